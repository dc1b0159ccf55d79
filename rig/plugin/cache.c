/* Each line is in one of these states:
     clean      live and durable are equal;
     dirty      stored to: a power failure leaves any subset of its words, as caches write back at will;
     pending    as dirty, and `pending` holds what the next fence makes durable.
   A seed decides how early lines are written back unasked, during the run and at its end, and whether
   by words of 8 bytes or by lines. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

/* PENDING << owner: under way until a fence of that owner. */
enum { DIRTY = 1, BY_PROGRAM = 2, PENDING = 4, ANY_PENDING = PENDING << PROGRAM | PENDING << KERNEL };

struct list {
    uint32_t *lines;
    size_t len, room;
};

static const uint8_t *live;
static uint8_t *durable, *pending, *state;
static size_t size;
static struct list dirty, on_their_way[2];
static uint64_t random_state;
/* Of 256 stores, how many write their line back at once; of 256 units, how many survive the cut. */
static unsigned early, surviving;
static size_t unit;

static unsigned chance(void)
{
    /* splitmix64 */
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) >> 56;
}

static void add(struct list *list, uint32_t line)
{
    if (list->len == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->lines = realloc(list->lines, list->room * sizeof *list->lines);
        if (!list->lines) abort();
    }
    list->lines[list->len++] = line;
}

void cache_open(const uint8_t *live_, uint8_t *durable_, size_t size_, uint64_t seed)
{
    static const unsigned kinds[][2] = {{0, 0}, {0, 256}, {0, 128}, {0, 16}, {0, 240}, {16, 0}, {64, 128}, {4, 32}};
    free(pending), free(state);
    dirty.len = on_their_way[PROGRAM].len = on_their_way[KERNEL].len = 0;
    live = live_, durable = durable_, size = size_, random_state = seed;
    pending = calloc(size, 1), state = calloc(size / LINE, 1);
    if (!pending || !state) abort();
    const unsigned *kind = kinds[chance() % 8];
    early = kind[0], surviving = kind[1];
    unit = chance() % 4 ? WORD : LINE;
}

/* Some of the line's units reach the medium as they are. */
static void evict(uint32_t line, unsigned of_256)
{
    for (size_t at = (size_t)line * LINE, end = at + LINE; at < end; at += unit) {
        if (chance() >= of_256) continue;
        memcpy(durable + at, live + at, unit);
        /* Or the fence would bring back the former bytes. */
        if (state[line] & ANY_PENDING) memcpy(pending + at, live + at, unit);
    }
}

static void touch(uint32_t line, enum owner owner)
{
    if (!(state[line] & DIRTY)) add(&dirty, line);
    state[line] |= DIRTY;
    if (owner == PROGRAM) {
        state[line] |= BY_PROGRAM;
        if (early && chance() < early) evict(line, 128);
    }
}

void cache_store(size_t offset, size_t len, enum owner owner)
{
    for (uint32_t line = offset / LINE; line <= (offset + len - 1) / LINE; line++) touch(line, owner);
}

static void send(uint32_t line, enum owner owner)
{
    size_t at = (size_t)line * LINE;
    if (!(state[line] & ANY_PENDING)) memcpy(pending + at, durable + at, LINE);
    if (state[line] & PENDING << owner) return;
    state[line] |= PENDING << owner;
    add(&on_their_way[owner], line);
}

void cache_stream(size_t offset, size_t len, enum owner owner)
{
    cache_store(offset, len, owner);
    for (uint32_t line = offset / LINE; line <= (offset + len - 1) / LINE; line++) send(line, owner);
    memcpy(pending + offset, live + offset, len);
}

void cache_write_back(size_t offset, enum owner owner)
{
    uint32_t line = offset / LINE;
    if (!(state[line] & DIRTY)) return;
    send(line, owner);
    memcpy(pending + (size_t)line * LINE, live + (size_t)line * LINE, LINE);
}

static bool differs(uint32_t line)
{
    return memcmp(live + (size_t)line * LINE, durable + (size_t)line * LINE, LINE);
}

/* Lines that became clean leave the list. */
static void prune(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < dirty.len; i++) {
        uint32_t line = dirty.lines[i];
        if (state[line] & ANY_PENDING || differs(line)) dirty.lines[kept++] = line;
        else state[line] = 0;
    }
    dirty.len = kept;
}

bool cache_fence(enum owner owner)
{
    struct list *sent = &on_their_way[owner];
    if (!sent->len) return false;
    for (size_t i = 0; i < sent->len; i++) {
        uint32_t line = sent->lines[i];
        memcpy(durable + (size_t)line * LINE, pending + (size_t)line * LINE, LINE);
        state[line] &= ~(PENDING << owner);
    }
    sent->len = 0;
    if (dirty.len > 4096) prune();
    return true;
}

size_t cache_undecided(void)
{
    prune();
    return dirty.len;
}

size_t cache_cut(void)
{
    size_t untold = 0;
    for (size_t line = 0; line < size / LINE; line++)
        if (!(state[line] & DIRTY) && differs(line)) untold++;
    for (size_t i = 0; i < dirty.len; i++) {
        uint32_t line = dirty.lines[i];
        if (!(state[line] & BY_PROGRAM)) continue;
        if (state[line] & ANY_PENDING && chance() < surviving)
            memcpy(durable + (size_t)line * LINE, pending + (size_t)line * LINE, LINE);
        evict(line, surviving);
    }
    return untold;
}
