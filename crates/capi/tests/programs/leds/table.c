/* A hash table whose entries contain the handle, reached by macros; a report of copies that qsort
 * sorts. */
#include "library.h"

struct handle {
    struct handle *chain;
    unsigned hash;
};

extendible struct entry {
    int key;
    struct handle hh;
    EXTENSION(1) {
        long hits;
        short tags[3];
    }
};

#define BUCKETS 16
#define TOP 8
#define OWNER(at) ((struct entry *)(void *)((char *)(at) - offsetof(struct entry, hh)))
#define TABLE_ADD(table, entry)                                                                   \
    do {                                                                                          \
        (entry)->hh.hash = (unsigned)(entry)->key * 2654435761U;                                  \
        (entry)->hh.chain = (table)->buckets[(entry)->hh.hash % BUCKETS];                         \
        (table)->buckets[(entry)->hh.hash % BUCKETS] = &(entry)->hh;                              \
        (table)->count++;                                                                         \
    } while (0)
#define TABLE_EACH(table, bucket, at)                                                             \
    for (int bucket = 0; bucket < BUCKETS; bucket++)                                              \
        for (struct handle *at = (table)->buckets[bucket]; at; at = at->chain)

struct table {
    int count, top;
    struct handle *buckets[BUCKETS];
    struct entry report[TOP];
};
PMO_TYPE(table, PMO_FIELD(int, count), PMO_FIELD(int, top), PMO_NESTED(struct entry[8], report, entry))

static struct table *table;

static struct entry *find(int key)
{
    unsigned hash = (unsigned)key * 2654435761U;
    for (struct handle *at = table->buckets[hash % BUCKETS]; at; at = at->chain)
        if (OWNER(at)->key == key)
            return OWNER(at);
    return NULL;
}

static void hit(int key)
{
    struct entry *entry = find(key);
    if (!entry) {
        entry = pmo_malloc(heap, sizeof *entry);
        CHECK(entry);
        entry->key = key;
        TABLE_ADD(table, entry);
        return;
    }
    entry->hits++;
    entry->tags[key % 3] = (short)entry->hits;
}

static void delete_entry(struct entry *entry)
{
    struct handle **at = &table->buckets[entry->hh.hash % BUCKETS];
    while (*at != &entry->hh)
        at = &(*at)->chain;
    *at = entry->hh.chain;
    table->count--;
    CHECK(pmo_free(entry) == 0);
}

static int compare(const struct entry *a, const struct entry *b)
{
    return a->hits != b->hits ? (a->hits < b->hits) - (a->hits > b->hits) : a->key - b->key;
}

static int by_hits(const void *one, const void *other)
{
    return compare(one, other);
}

/* The entries with the most hits. */
static void report(void)
{
    table->top = 0;
    TABLE_EACH(table, bucket, at) {
        if (table->top == TOP)
            break;
        memcpy(&table->report[table->top], OWNER(at), sizeof(struct entry));
        table->top++;
    }
    qsort(table->report, (size_t)table->top, sizeof(struct entry), by_hits);
}

static int check_entry(const struct entry *entry)
{
    for (int i = 0; i < 3; i++)
        CHECK(entry->tags[i] == (i == entry->key % 3 ? (short)entry->hits : 0));
    return entry->hits != 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    table = open_root(argv[1], PMO_TYPEOF(table));
    for (int step = 0; strcmp(argv[2], "run") == 0; step++) {
        int key = below(100);
        if (below(4) == 0 && find(key))
            delete_entry(find(key));
        else
            hit(key);
        if (step % 5 == 0)
            report();
        if (step % 3 == 0)
            psynced();
    }
    size_t blocks = 1;
    int count = 0;
    TABLE_EACH(table, bucket, at) {
        blocks += (size_t)(1 + check_entry(OWNER(at)));
        count++;
    }
    for (int i = 0; i < TOP; i++) {
        blocks += (size_t)check_entry(&table->report[i]);
        CHECK(i == 0 || i >= table->top || compare(&table->report[i - 1], &table->report[i]) < 0);
    }
    CHECK(count == table->count);
    expect_blocks(blocks);
    printf("%d entries\n", count);
    return 0;
}
