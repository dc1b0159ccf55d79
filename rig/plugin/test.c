/* Tests which stores the plugin takes for durable, without a machine. Prints the number of the
   wrong line. */
#include "cache.h"
#include "insn.h"
#include "supply.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define SIZE 4096
static uint8_t live[SIZE], durable[SIZE];
static int failed;

#define EXPECT(what) \
    do \
        if (!(what)) printf("line %d: %s\n", __LINE__, #what), failed = 1; \
    while (0)
#define KIND(...) (decode((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})).kind)

static void store(size_t at, uint8_t value)
{
    live[at] = value;
    cache_store(at, 1, PROGRAM);
}


static void a_line_is_durable_when_written_back_and_fenced(void)
{
    store(0, 1);
    EXPECT(!cache_fence(PROGRAM) && durable[0] == 0);
    cache_write_back(0, PROGRAM);
    EXPECT(durable[0] == 0);
    EXPECT(!cache_fence(KERNEL) && durable[0] == 0);
    EXPECT(cache_fence(PROGRAM) && durable[0] == 1);
}

static void a_store_after_the_write_back_is_not_part_of_it(void)
{
    store(64, 1);
    cache_write_back(64, PROGRAM);
    store(64, 2);
    store(65, 2);
    cache_fence(PROGRAM);
    EXPECT(durable[64] == 1 && durable[65] == 0);
    EXPECT(cache_undecided() == 1);
}

static void a_streamed_store_takes_its_own_bytes_along(void)
{
    store(128, 1);
    live[136] = 3;
    cache_stream(136, 1, PROGRAM);
    cache_fence(PROGRAM);
    EXPECT(durable[128] == 0 && durable[136] == 3);
}

static void instructions_are_known(void)
{
    EXPECT(KIND(0x66, 0x0f, 0xae, 0x30) == WRITE_BACK);             /* clwb [rax] */
    EXPECT(KIND(0x66, 0x0f, 0xae, 0x3f) == WRITE_BACK);             /* clflushopt [rdi] */
    EXPECT(KIND(0x3e, 0x0f, 0xae, 0x38) == WRITE_BACK);             /* ds clflush [rax] */
    EXPECT(KIND(0x0f, 0xae, 0x30) == PLAIN);                        /* xsaveopt [rax] */
    EXPECT(KIND(0x0f, 0xae, 0xf8) == FENCE);                        /* sfence */
    EXPECT(KIND(0x0f, 0xae, 0xf0) == FENCE);                        /* mfence */
    EXPECT(KIND(0x0f, 0xae, 0xe8) == PLAIN);                        /* lfence */
    EXPECT(KIND(0x66, 0x0f, 0xae, 0xf0) == PLAIN);                  /* tpause */
    EXPECT(KIND(0x48, 0x0f, 0xc3, 0x07) == STREAM);                 /* movnti [rdi], rax */
    EXPECT(KIND(0x66, 0x0f, 0xe7, 0x07) == STREAM);                 /* movntdq [rdi], xmm0 */
    EXPECT(KIND(0xc5, 0xfd, 0xe7, 0x07) == STREAM);                 /* vmovntdq [rdi], ymm0 */
    EXPECT(KIND(0x62, 0xe1, 0x7d, 0x48, 0xe7, 0x07) == STREAM);     /* vmovntdq [rdi], zmm16 */
    EXPECT(KIND(0xf3, 0xa4) == PLAIN);                              /* rep movsb */
    struct insn far = decode((const uint8_t[]){0x66, 0x41, 0x0f, 0xae, 0x74, 0x8d, 0x40}, 7);
    EXPECT(far.kind == WRITE_BACK && far.operand.base == 13);       /* clwb [r13 + rcx*4 + 64] */
    EXPECT(far.operand.index == 1 && far.operand.scale == 4 && far.operand.displacement == 64);
    struct insn space = decode((const uint8_t[]){0x41, 0x0f, 0x22, 0xdc}, 4);
    EXPECT(space.kind == SPACE && space.operand.base == 12);        /* mov cr3, r12 */
    EXPECT(KIND(0x0f, 0x22, 0xc0) == PLAIN);                        /* mov cr0, rax */
    struct insn mark = decode((const uint8_t[]){0x0f, 0x1f, 0x80, 0x02, 0x47, 0x49, 0x52}, 7);
    EXPECT(mark.kind == MARK && (mark.operand.displacement & 0xff) == 2);
}

/* A seed with which nothing survives by chance. */
static uint64_t strict(void)
{
    for (uint64_t seed = 0;; seed++) {
        memset(live, 0, SIZE), memset(durable, 0, SIZE);
        cache_open(live, durable, SIZE, seed);
        for (size_t at = 0; at < SIZE; at += 8) store(at, 1);
        cache_cut();
        size_t at = 0;
        while (at < SIZE && !durable[at]) at++;
        if (at == SIZE) return seed;
    }
}

static void a_cut_leaves_any_subset_of_words(void)
{
    int none = 0, some = 0, all = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        memset(live, 0, SIZE), memset(durable, 0, SIZE);
        cache_open(live, durable, SIZE, seed);
        for (size_t at = 0; at < SIZE; at += 8) store(at, 1);
        cache_cut();
        size_t there = 0;
        for (size_t at = 0; at < SIZE; at++) there += durable[at];
        if (there == 0) none++;
        else if (there == SIZE / 8) all++;
        else some++;
    }
    EXPECT(none > 5 && some > 50 && all > 5);
}

static void a_change_without_a_store_is_noticed(void)
{
    live[1000] ^= 0x80;
    EXPECT(cache_cut() == 1);
}

static int look(void)
{
    int lines = 0;
    ioctl(-1, TIOCMGET, &lines);
    return lines;
}

static void the_supply_tells_that_it_fails_and_ends(void)
{
    int fine = TIOCM_CD | TIOCM_CTS | TIOCM_DSR;
    EXPECT(look() == fine && !supply_failed());
    supply_fail(3, 0);
    EXPECT(look() == fine && look() == fine && !supply_failed() && !supply_over());
    EXPECT(look() == (TIOCM_CTS | TIOCM_DSR) && supply_failed());
    while (!supply_over()) look();
    supply_set(TIOCM_RI | TIOCM_DTR);
    EXPECT(look() == TIOCM_RI);
    EXPECT(ioctl(-1, FIONREAD, &fine) == -1);                       /* all other calls are the system's */
}

int main(void)
{
    uint64_t seed = strict();
    memset(live, 0, SIZE), memset(durable, 0, SIZE);
    cache_open(live, durable, SIZE, seed);
    a_line_is_durable_when_written_back_and_fenced();
    a_store_after_the_write_back_is_not_part_of_it();
    a_streamed_store_takes_its_own_bytes_along();
    a_change_without_a_store_is_noticed();
    instructions_are_known();
    a_cut_leaves_any_subset_of_words();
    the_supply_tells_that_it_fails_and_ends();
    return failed;
}
