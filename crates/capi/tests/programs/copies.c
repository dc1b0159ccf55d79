/* Snapshots, copies, comparing, reading beside a writer, the end of objects: copies.c POOL. The
 * writer of followed objects is a child of the program. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void store(pmo_pool *pool, const char *name, long value)
{
    long *object = pmo_attach(pool, name, PMO_WRITE, NULL, 0);
    CHECK(object);
    *object = value;
    CHECK(pmo_psync(object) == 0 && pmo_detach(object) == 0);
}

static long load(pmo_pool *pool, const char *name)
{
    long *object = pmo_attach(pool, name, PMO_READ, NULL, 0);
    CHECK(object);
    long value = *object;
    CHECK(pmo_detach(object) == 0);
    return value;
}

static void count(uint64_t done, uint64_t all, void *context)
{
    CHECK(done <= all);
    ++*(long *)context;
}

static void kept(pmo_pool *pool)
{
    struct pmo_pool_info before, after;
    struct pmo_stat stat;
    CHECK(pmo_create(pool, "a", 1 << 20) == 0 && pmo_create(pool, "b", 1 << 20) == 0);
    CHECK(pmo_pool_info(pool, &before) == 0);
    store(pool, "a", 1);
    store(pool, "b", 1);
    CHECK(pmo_snapshot(pool, "a", "a1", NULL, 0) == 0);
    /* Beside this writer, without its unsynced stores. */
    long *a = pmo_attach(pool, "a", PMO_WRITE, NULL, 0);
    CHECK(a);
    *a = 2;
    CHECK(pmo_psync(a) == 0);
    *a = 3;
    struct pmo_snapshot both[] = {{"a", "a2"}, {"b", "b2"}};
    CHECK(pmo_snapshot_all(pool, both, 2, NULL, 0) == 0 && pmo_snapshot_all(pool, NULL, 0, NULL, 0) == 0);
    CHECK(*a == 3 && pmo_psync(a) == 0 && pmo_detach(a) == 0);
    CHECK(load(pool, "a1") == 1 && load(pool, "a2") == 2 && load(pool, "b2") == 1 && load(pool, "a") == 3);
    CHECK(pmo_stat(pool, "a2", &stat) == 0 && (stat.flags & PMO_STAT_SNAPSHOT));
    CHECK(pmo_stat(pool, "a", &stat) == 0 && (stat.flags & (PMO_STAT_SHARES | PMO_STAT_SNAPSHOT)) == PMO_STAT_SHARES);
    CHECK(stat.own == 4096 && pmo_stat(pool, "b", &stat) == 0 && stat.own == 0);

    CHECK(pmo_create_from(pool, "a1", "one", NULL, 0, NULL) == 0);
    struct pmo_create_options options = {.read_key = "r", .read_key_len = 1, .flags = PMO_STAT_READ_ONLY};
    CHECK(pmo_create_from(pool, "a", "three", NULL, 0, &options) == 0);
    store(pool, "one", 10);
    CHECK(load(pool, "a1") == 1 && load(pool, "one") == 10 && load(pool, "a") == 3);
    FAILS(!pmo_attach(pool, "three", PMO_READ, NULL, 0), PMO_ERR_WRONG_KEY, "\"three\"");
    FAILS(!pmo_attach(pool, "three", PMO_WRITE, "r", 1), PMO_ERR_OBJECT_READ_ONLY, "\"three\"");

    FAILS(!pmo_attach(pool, "a1", PMO_WRITE, NULL, 0), PMO_ERR_OBJECT_READ_ONLY, "\"a1\"");
    FAILS(pmo_resize(pool, "a1", 1 << 16, NULL, 0) == -1, PMO_ERR_OBJECT_READ_ONLY, "\"a1\"");

    const char *gone[] = {"a1", "a2", "b2", "one", "three"};
    for (int i = 0; i < 5; i++)
        CHECK(pmo_destroy(pool, gone[i], "r", i == 4) == 0);
    long calls = 0;
    struct pmo_collected collected;
    CHECK(pmo_collect(pool, count, &calls, &collected) == 0 && calls > 0 && collected.copied > 0);
    CHECK(pmo_stat(pool, "a", &stat) == 0 && (stat.flags & PMO_STAT_SHARES) == 0);
    CHECK(stat.own == 1 << 20 && pmo_pool_info(pool, &after) == 0 && after.free == before.free && after.objects == 2);
    CHECK(load(pool, "a") == 3 && load(pool, "b") == 1);
    CHECK(pmo_collect(pool, NULL, NULL, &collected) == 0 && collected.copied == 0 && collected.removed == 0);
    CHECK(pmo_collect(pool, NULL, NULL, NULL) == 0);
}

/* Objects of page ranges of others. */
static void parts(pmo_pool *pool)
{
    enum { SIZE = 1 << 20 };
    struct pmo_stat stat;
    struct pmo_create_options options = {.size = SIZE + 5000};
    char *bytes;
    for (int nth = 0; nth < 2; nth++) {
        const char *name = nth ? "second" : "first";
        CHECK(pmo_create(pool, name, SIZE) == 0 && (bytes = pmo_attach(pool, name, PMO_WRITE, NULL, 0)) != NULL);
        memset(bytes, 1 + nth, SIZE);
        CHECK(pmo_psync(bytes) == 0 && pmo_detach(bytes) == 0);
    }
    struct pmo_page_range ranges[] = {{"first", 0, SIZE - 8192, 0}, {"second", 4096, 4096, SIZE}};
    CHECK(pmo_create_from_ranges(pool, "parts", ranges, 2, NULL, 0, &options) == 0);
    CHECK(pmo_stat(pool, "parts", &stat) == 0 && stat.size == SIZE + 5000 && (stat.flags & PMO_STAT_SHARES));
    CHECK((bytes = pmo_attach(pool, "parts", PMO_WRITE, NULL, 0)) != NULL);
    CHECK(bytes[0] == 1 && bytes[SIZE - 8193] == 1 && bytes[SIZE - 8192] == 0 && bytes[SIZE - 1] == 0);
    CHECK(bytes[SIZE] == 2 && bytes[SIZE + 4095] == 2 && bytes[SIZE + 4096] == 0);
    bytes[0] = 3;
    CHECK(pmo_psync(bytes) == 0 && pmo_detach(bytes) == 0 && (load(pool, "first") & 0xff) == 1);
    CHECK(pmo_create_from_ranges(pool, "zeros", NULL, 0, NULL, 0, &options) == 0 && load(pool, "zeros") == 0);

    ranges[1].at = 4096;
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 2, NULL, 0, &options) == -1, PMO_ERR_BAD_SIZE, "\"second\"");
    ranges[1].at = 1;
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 2, NULL, 0, &options) == -1, PMO_ERR_BAD_SIZE, "multiples of a page");
    ranges[1].len = UINT64_MAX;
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 2, NULL, 0, &options) == -1, PMO_ERR_ARGUMENT, "2^64");
    ranges[1].len = 4096;
    ranges[1].object = NULL;
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 2, NULL, 0, &options) == -1, PMO_ERR_ARGUMENT, "object of a range is NULL");
    FAILS(pmo_create_from_ranges(pool, "n", NULL, 1, NULL, 0, &options) == -1, PMO_ERR_ARGUMENT, "list of ranges is NULL");
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 1, NULL, 0, NULL) == -1, PMO_ERR_ARGUMENT, "options is NULL");
    FAILS(pmo_create_from_ranges(pool, "parts", ranges, 1, NULL, 0, &options) == -1, PMO_ERR_EXISTS, "\"parts\"");
    ranges[0].object = "none";
    FAILS(pmo_create_from_ranges(pool, "n", ranges, 1, NULL, 0, &options) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    const char *made[] = {"first", "second", "parts", "zeros"};
    for (int i = 0; i < 4; i++)
        CHECK(pmo_destroy(pool, made[i], NULL, 0) == 0);
    CHECK(pmo_collect(pool, NULL, NULL, NULL) == 0);
}

static void run(uint64_t first, uint64_t count, void *context)
{
    uint64_t *runs = context;
    CHECK(runs[0] < 4);
    runs[1 + runs[0]++] = first << 32 | count;
}

static void gone(const char *snapshot, void *context)
{
    strcat(strcat(context, snapshot), ";");
}

/* Going back, comparing, thinning. */
static void back(pmo_pool *pool)
{
    struct pmo_difference difference;
    struct pmo_stat stat;
    uint64_t runs[5] = {0};
    CHECK(pmo_create(pool, "o", 1 << 20) == 0);
    store(pool, "o", 1);
    CHECK(pmo_snapshot(pool, "o", "o1", NULL, 0) == 0);
    char *o = pmo_attach(pool, "o", PMO_WRITE, NULL, 0);
    CHECK(o && pmo_grow(o, 2 << 20) == 0);
    o[0] = 2, o[4096] = 2, o[20 * 4096] = 2, o[(2 << 20) - 1] = 2;
    CHECK(pmo_psync(o) == 0);
    CHECK(pmo_diff(pool, "o1", "o", NULL, 0, run, runs, &difference) == 0);
    CHECK(difference.pages == 4 && difference.older_size == 1 << 20 && difference.newer_size == 2 << 20);
    CHECK(runs[0] == 3 && runs[1] == 2 && runs[2] == ((uint64_t)20 << 32 | 1) && runs[3] == ((uint64_t)511 << 32 | 1));
    CHECK(pmo_diff(pool, "o", "o", NULL, 0, NULL, NULL, NULL) == 0 && pmo_diff(pool, "o", "o1", NULL, 0, NULL, NULL, &difference) == 0);
    CHECK(difference.pages == 4 && difference.newer_size == 1 << 20);
    FAILS(pmo_rollback(pool, "o", "o1", NULL, 0) == -1, PMO_ERR_HELD, "\"o\"");
    CHECK(o[0] == 2 && pmo_detach(o) == 0);
    FAILS(pmo_rollback(pool, "o", "b", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "\"o\"");
    FAILS(pmo_rollback(pool, "o", "none", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "");
    FAILS(pmo_rollback(pool, "o", NULL, NULL, 0) == -1, PMO_ERR_ARGUMENT, "name of the snapshot is NULL");
    FAILS(pmo_diff(pool, "o", "none", NULL, 0, NULL, NULL, NULL) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_diff(pool, NULL, "o", NULL, 0, NULL, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "older one is NULL");
    FAILS(pmo_diff(pool, "o", "o", NULL, 0, NULL, NULL, (struct pmo_difference *)1) == -1, PMO_ERR_ARGUMENT, "misaligned");
    CHECK(load(pool, "o") != 1 && pmo_rollback(pool, "o", "o1", NULL, 0) == 0 && load(pool, "o") == 1);
    CHECK(pmo_stat(pool, "o", &stat) == 0 && stat.size == 1 << 20 && load(pool, "o1") == 1);
    CHECK(pmo_diff(pool, "o1", "o", NULL, 0, NULL, NULL, &difference) == 0 && difference.pages == 0);

    char names[256] = "";
    CHECK(pmo_snapshot(pool, "o", "o@2020-01-01T03:00:00Z", NULL, 0) == 0);
    CHECK(pmo_snapshot(pool, "o", "o@2020-01-01T04:00:00Z", NULL, 0) == 0);
    CHECK(pmo_thin(pool, "o", "24h:1h", NULL, 0, gone, names) == 1 && strcmp(names, "o@2020-01-01T03:00:00Z;") == 0);
    CHECK(pmo_thin(pool, "o", "24h:1h", NULL, 0, NULL, NULL) == 0 && load(pool, "o1") == 1);
    FAILS(pmo_thin(pool, "o", "24h", NULL, 0, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "has no period");
    FAILS(pmo_thin(pool, "o", NULL, NULL, 0, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "policy is NULL");
    FAILS(pmo_thin(pool, "none", "24h:1h", NULL, 0, NULL, NULL) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    CHECK(pmo_destroy(pool, "o1", NULL, 0) == 0 && pmo_destroy(pool, "o@2020-01-01T04:00:00Z", NULL, 0) == 0);
    CHECK(pmo_destroy(pool, "o", NULL, 0) == 0);
}

static int first(const struct pmo_tie *tie, void *context)
{
    *(struct pmo_tie *)context = *tie;
    return 7;
}

static void *keeps(void *pool)
{
    struct pmo_pool_info before, after;
    CHECK(pmo_create(pool, "t", 4096) == 0 && pmo_tie_to_thread(pool, "t", NULL, 0) == 0 && pmo_pool_info(pool, &before) == 0);
    CHECK(pmo_destroy(pool, "t", NULL, 0) == 0 && pmo_collect(pool, NULL, NULL, NULL) == 0);
    CHECK(pmo_pool_info(pool, &after) == 0 && after.free == before.free);
    return pool;
}

static void ends(pmo_pool *pool)
{
    struct pmo_pool_info before, after;
    struct pmo_stat stat;
    struct pmo_tie tie;
    int was_tied = 5;
    CHECK(pmo_collect(pool, NULL, NULL, NULL) == 0 && pmo_pool_info(pool, &before) == 0 && pmo_create(pool, "x", 4096) == 0);
    long *x = pmo_attach(pool, "x", PMO_WRITE, NULL, 0);
    CHECK(x && pmo_delete(pool, "x", NULL, 0) == 0);
    FAILS(!pmo_attach(pool, "x", PMO_READ, NULL, 0), PMO_ERR_NOT_FOUND, "\"x\"");
    *x = 3;
    CHECK(pmo_psync(x) == 0 && pmo_create(pool, "x", 4096) == 0 && load(pool, "x") == 0 && *x == 3 && pmo_detach(x) == 0);
    FAILS(pmo_delete(pool, "none", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_delete(pool, NULL, NULL, 0) == -1, PMO_ERR_ARGUMENT, "name is NULL");

    CHECK(pmo_create(pool, "y", 4096) == 0 && pmo_tie(pool, "y", "x", NULL, 0) == 0 && pmo_tie(pool, "y", "x", NULL, 0) == 0);
    CHECK(pmo_ties(pool, "y", first, &tie) == 7 && strcmp(tie.name, "x") == 0 && !tie.deleted);
    CHECK(pmo_ties(pool, "x", first, &tie) == 0);
    FAILS(pmo_tie(pool, "x", "y", NULL, 0) == -1, PMO_ERR_TIE_CYCLE, "\"x\"");
    FAILS(pmo_tie(pool, "y", "none", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_tie(pool, "y", NULL, NULL, 0) == -1, PMO_ERR_ARGUMENT, "other one is NULL");
    FAILS(pmo_ties(pool, "y", NULL, NULL) == -1, PMO_ERR_ARGUMENT, "function to be called is NULL");
    FAILS(pmo_untie(pool, "y", "x", NULL, 0, (int *)1) == -1, PMO_ERR_ARGUMENT, "misaligned");
    CHECK(pmo_untie(pool, "y", "x", NULL, 0, &was_tied) == 0 && was_tied == 1);
    CHECK(pmo_untie(pool, "y", "x", NULL, 0, &was_tied) == 0 && was_tied == 0 && pmo_untie(pool, "y", "x", NULL, 0, NULL) == 0);
    CHECK(pmo_tie(pool, "y", "x", NULL, 0) == 0 && pmo_destroy(pool, "y", NULL, 0) == 0);
    FAILS(!pmo_attach(pool, "y", PMO_READ, NULL, 0), PMO_ERR_NOT_FOUND, "\"y\"");
    CHECK(pmo_pool_info(pool, &after) == 0 && after.free < before.free && pmo_destroy(pool, "x", NULL, 0) == 0);
    CHECK(pmo_collect(pool, NULL, NULL, NULL) == 0);
    CHECK(pmo_pool_info(pool, &after) == 0 && after.free == before.free && after.objects == before.objects);

    /* The thread's tie has ended. */
    pthread_t thread;
    void *kept = NULL;
    CHECK(pthread_create(&thread, NULL, keeps, pool) == 0 && pthread_join(thread, &kept) == 0 && kept == pool);
    CHECK(pmo_pool_info(pool, &after) == 0 && after.free == before.free && after.objects == before.objects);
    CHECK(pmo_create(pool, "p", 4096) == 0 && pmo_tie_to_process(pool, "p", NULL, 0) == 0);
    CHECK(pmo_ties(pool, "p", first, &tie) == 7 && strncmp(tie.name, "process ", 8) == 0 && !tie.deleted);
    CHECK(pmo_untie(pool, "p", tie.name, NULL, 0, &was_tied) == 0 && was_tied == 1 && pmo_destroy(pool, "p", NULL, 0) == 0);
    FAILS(pmo_tie_to_process(pool, "none", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_tie_to_thread(pool, NULL, NULL, 0) == -1, PMO_ERR_ARGUMENT, "name is NULL");

    struct pmo_create_options options = {.size = 4096, .flags = PMO_STAT_VOLATILE};
    CHECK(pmo_create_with(pool, "v", &options) == 0 && pmo_stat(pool, "v", &stat) == 0 && stat.flags == PMO_STAT_VOLATILE);
    store(pool, "v", 1);
    CHECK(load(pool, "v") == 1 && pmo_destroy(pool, "v", NULL, 0) == 0);
}

static void keys(pmo_pool *pool)
{
    struct pmo_create_options options = {
        .size = 4096, .read_key = "r", .read_key_len = 1, .write_key = "w", .write_key_len = 1};
    CHECK(pmo_create_with(pool, "locked", &options) == 0);
    FAILS(pmo_snapshot(pool, "locked", "s", NULL, 0) == -1, PMO_ERR_WRONG_KEY, "\"locked\"");
    FAILS(pmo_snapshot(pool, "locked", "s", "r", 1) == -1, PMO_ERR_WRONG_KEY, "\"locked\"");
    FAILS(pmo_create_from(pool, "locked", "s", "r", 1, NULL) == -1, PMO_ERR_WRONG_KEY, "\"locked\"");
    FAILS(!pmo_attach_snapshot(pool, "locked", NULL, 0), PMO_ERR_WRONG_KEY, "\"locked\"");
    struct pmo_snapshot both[] = {{"a", "s"}, {"locked", "t"}};
    FAILS(pmo_snapshot_all(pool, both, 2, "r", 1) == -1, PMO_ERR_WRONG_KEY, "");
    FAILS(!pmo_attach(pool, "s", PMO_READ, NULL, 0), PMO_ERR_NOT_FOUND, "\"s\"");
    CHECK(pmo_snapshot_all(pool, both, 2, "w", 1) == 0);
    /* The snapshot has the key of the call. */
    FAILS(!pmo_attach_snapshot(pool, "t", "r", 1), PMO_ERR_WRONG_KEY, "\"t\"");
    void *t = pmo_attach_snapshot(pool, "t", "w", 1);
    CHECK(t && pmo_detach(t) == 0 && load(pool, "s") == 3);
    FAILS(pmo_destroy(pool, "t", "r", 1) == -1, PMO_ERR_WRONG_KEY, "\"t\"");
    CHECK(pmo_destroy(pool, "t", "w", 1) == 0 && pmo_destroy(pool, "s", NULL, 0) == 0);
    void *locked = pmo_attach_snapshot(pool, "locked", "r", 1);
    CHECK(locked && pmo_detach(locked) == 0 && pmo_destroy(pool, "locked", "w", 1) == 0);
}

static void arguments(pmo_pool *pool, const char *path)
{
    FAILS(pmo_snapshot(pool, NULL, "s", NULL, 0) == -1, PMO_ERR_ARGUMENT, "name is NULL");
    FAILS(pmo_snapshot(pool, "a", NULL, NULL, 0) == -1, PMO_ERR_ARGUMENT, "name of the snapshot is NULL");
    FAILS(pmo_snapshot(pool, "a", "s", NULL, 1) == -1, PMO_ERR_ARGUMENT, "key is NULL");
    FAILS(pmo_snapshot(NULL, "a", "s", NULL, 0) == -1, PMO_ERR_ARGUMENT, "PMO_POOL");
    FAILS(pmo_snapshot(pool, "none", "s", NULL, 0) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_snapshot(pool, "a", "b", NULL, 0) == -1, PMO_ERR_EXISTS, "\"a\"");
    FAILS(pmo_snapshot(pool, "a", "", NULL, 0) == -1, PMO_ERR_BAD_NAME, "\"a\"");
    FAILS(pmo_snapshot_all(pool, NULL, 1, NULL, 0) == -1, PMO_ERR_ARGUMENT, "list of snapshots is NULL");
    struct pmo_snapshot hollow[] = {{"a", "s"}, {"b", NULL}}, twice[] = {{"a", "s"}, {"b", "s"}};
    FAILS(pmo_snapshot_all(pool, hollow, 2, NULL, 0) == -1, PMO_ERR_ARGUMENT, "name of the snapshot is NULL");
    FAILS(pmo_snapshot_all(pool, twice, 2, NULL, 0) == -1, PMO_ERR_EXISTS, "");
    FAILS(pmo_create_from(pool, "a", NULL, NULL, 0, NULL) == -1, PMO_ERR_ARGUMENT, "name of the copy is NULL");
    FAILS(pmo_create_from(pool, "none", "s", NULL, 0, NULL) == -1, PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_create_from(pool, "a", "b", NULL, 0, NULL) == -1, PMO_ERR_EXISTS, "\"a\"");
    struct pmo_create_options sized = {.size = 1 << 20}, sparse = {.flags = PMO_STAT_SPARSE};
    FAILS(pmo_create_from(pool, "a", "s", NULL, 0, &sized) == -1, PMO_ERR_ARGUMENT, "both are 0");
    FAILS(pmo_create_from(pool, "a", "s", NULL, 0, &sparse) == -1, PMO_ERR_ARGUMENT, "flags 0x2");
    FAILS(!pmo_attach_snapshot(pool, NULL, NULL, 0), PMO_ERR_ARGUMENT, "name is NULL");
    FAILS(!pmo_attach_snapshot(pool, "none", NULL, 0), PMO_ERR_NOT_FOUND, "\"none\"");
    FAILS(pmo_collect((pmo_pool *)0x1234, NULL, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "not open");
    FAILS(pmo_collect(pool, NULL, NULL, (struct pmo_collected *)1) == -1, PMO_ERR_ARGUMENT, "misaligned");
    FAILS(!pmo_attach(pool, "s", PMO_READ, NULL, 0), PMO_ERR_NOT_FOUND, "\"s\"");

    int newer = 5;
    FAILS(pmo_refresh(NULL, &newer) == -1, PMO_ERR_NOT_ATTACHED, "0x0");
    FAILS(pmo_refresh(&newer, &newer) == -1, PMO_ERR_NOT_ATTACHED, "");
    long *a = pmo_attach(pool, "a", PMO_WRITE, NULL, 0);
    CHECK(a);
    *a = 4;
    FAILS(pmo_refresh(a, &newer) == -1, PMO_ERR_ARGUMENT, "pmo_attach_snapshot");
    FAILS(!pmo_attach_snapshot(pool, "a", NULL, 0), PMO_ERR_ADDRESS_TAKEN, "\"a\"");
    CHECK(*a == 4 && newer == 5 && pmo_detach(a) == 0);
    CHECK((a = pmo_attach(pool, "a", PMO_READ, NULL, 0)) != NULL);
    FAILS(pmo_refresh(a, &newer) == -1, PMO_ERR_ARGUMENT, "pmo_attach_snapshot");
    CHECK(*a == 3 && pmo_detach(a) == 0);
    FAILS(pmo_refresh(a, &newer) == -1, PMO_ERR_NOT_ATTACHED, "");
    CHECK((a = pmo_attach_snapshot(pool, "a", NULL, 0)) != NULL);
    FAILS(pmo_refresh(a, (int *)((char *)&newer + 1)) == -1, PMO_ERR_ARGUMENT, "misaligned");
    CHECK(newer == 5 && pmo_refresh(a, &newer) == 0 && newer == 0 && pmo_refresh(a + 1, NULL) == 0);
    CHECK(pmo_detach(a) == 0);
    FAILS(pmo_refresh(a, &newer) == -1, PMO_ERR_NOT_ATTACHED, "");
    pmo_pool *reading = pmo_open(path, PMO_READ_ONLY);
    CHECK(reading);
    FAILS(!pmo_attach_snapshot(reading, "a", NULL, 0), PMO_ERR_READ_ONLY, "\"a\"");
    FAILS(pmo_snapshot(reading, "a", "s", NULL, 0) == -1, PMO_ERR_READ_ONLY, "\"a\"");
    FAILS(pmo_create_from(reading, "a", "s", NULL, 0, NULL) == -1, PMO_ERR_READ_ONLY, "\"a\"");
    FAILS(pmo_collect(reading, NULL, NULL, NULL) == -1, PMO_ERR_READ_ONLY, "");
    CHECK(pmo_close(reading) == 0);
}

static void full(const char *path)
{
    char small[4096];
    CHECK(snprintf(small, sizeof small, "%s.small", path) < (int)sizeof small);
    pmo_pool *pool = pmo_format(small, 16 << 20, 0);
    struct pmo_pool_info info, after;
    CHECK(pool && pmo_pool_info(pool, &info) == 0);
    CHECK(pmo_create(pool, "most", info.largest_free / 2 / 4096 * 4096 + 4096) == 0);
    store(pool, "most", 7);
    CHECK(pmo_pool_info(pool, &info) == 0);
    FAILS(pmo_snapshot(pool, "most", "s", NULL, 0) == -1, PMO_ERR_NO_ROOM, "\"most\"");
    FAILS(pmo_create_from(pool, "most", "s", NULL, 0, NULL) == -1, PMO_ERR_NO_ROOM, "\"most\"");
    FAILS(!pmo_attach_snapshot(pool, "most", NULL, 0), PMO_ERR_NO_ROOM, "\"most\"");
    CHECK(pmo_pool_info(pool, &after) == 0 && after.free == info.free && after.objects == 1);
    CHECK(load(pool, "most") == 7 && pmo_close(pool) == 0);
}

enum { PAGE = 4096, PAGES = 400 };

/* The writing child: obeys one letter at a time, and answers with it. */
struct writer {
    int orders, answers;
    pid_t pid;
};

static void add(char *object, int page, int end, int at)
{
    for (; page < end; page++)
        object[page * PAGE + at]++;
    CHECK(pmo_psync(object) == 0);
}

static void work(const char *path, int orders, int answers)
{
    pmo_pool *pool = pmo_open(path, 0);
    char *object = NULL, order;
    while (read(orders, &order, 1) == 1) {
        if (order == 'a')
            CHECK((object = pmo_attach(pool, "w", PMO_WRITE, NULL, 0)) != NULL);
        else if (order == 'd')
            CHECK(pmo_detach(object) == 0);
        else if (order == '+')
            CHECK(++*(long *)object && pmo_psync(object) == 0);
        else if (order == '~')
            ++*(long *)object;
        else if (order == 'g')
            CHECK(pmo_grow(object, 1 << 20) == 0 && (object[(1 << 20) - 1] = 9) && pmo_psync(object) == 0);
        else if (order == 'A')
            CHECK((object = pmo_attach(pool, "pages", PMO_WRITE, NULL, 0)) != NULL);
        else if (order == 'I')
            add(object, 0, PAGES, 0);
        else if (order == 'S')
            add(object, 0, PAGES / 4, 1);
        else if (order == 'U')
            add(object, PAGES / 2, PAGES * 3 / 4, 2);
        else if (order == 'C')
            for (int page = 0; page < PAGES; page++) {
                char *bytes = object + page * PAGE;
                CHECK(bytes[0] == 1 && bytes[1] == (page < PAGES / 4 ? object[1] : 0));
                CHECK(bytes[2] == (page >= PAGES / 2 && page < PAGES * 3 / 4 ? object[PAGES / 2 * PAGE + 2] : 0));
            }
        else if (order == 'G')
            CHECK(pmo_grow(object, 2 * PAGES * PAGE) == 0);
        else if (order == 'Z')
            for (int page = PAGES; page < 2 * PAGES; page++)
                CHECK(object[page * PAGE] == 0);
        CHECK(write(answers, &order, 1) == 1);
    }
    exit(0);
}

static struct writer begin(const char *path)
{
    int orders[2], answers[2];
    CHECK(pipe(orders) == 0 && pipe(answers) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(orders[1]);
        work(path, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    return (struct writer){orders[1], answers[0], pid};
}

static void tell(const struct writer *writer, const char *orders)
{
    for (char answer; *orders; orders++)
        CHECK(write(writer->orders, orders, 1) == 1 && read(writer->answers, &answer, 1) == 1 && answer == *orders);
}

static void end(const struct writer *writer)
{
    int status;
    CHECK(kill(writer->pid, SIGKILL) == 0 && waitpid(writer->pid, &status, 0) == writer->pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(writer->orders);
    close(writer->answers);
}

static int refreshed(void *object)
{
    int newer = -1;
    CHECK(pmo_refresh(object, &newer) == 0 && (newer == 0 || newer == 1));
    return newer;
}

static void follow(pmo_pool *pool, const char *path)
{
    struct pmo_object known;
    CHECK(pmo_create(pool, "w", 8192) == 0);
    struct writer writer = begin(path);
    tell(&writer, "a+");
    FAILS(!pmo_attach(pool, "w", PMO_READ, NULL, 0), PMO_ERR_HELD, "\"w\"");
    volatile long *w = pmo_attach_snapshot(pool, "w", NULL, 0);
    char *bytes = (char *)(uintptr_t)w;
    CHECK(w && *w == 1 && !refreshed(bytes));
    CHECK(pmo_object(bytes, &known) == 0 && !known.writable && known.size == 8192 && strcmp(known.name, "w") == 0);
    FAILS(!pmo_attach_snapshot(pool, "w", NULL, 0), PMO_ERR_ADDRESS_TAKEN, "\"w\"");
    FAILS(pmo_grow(bytes, 1 << 20) == -1, PMO_ERR_READ_ONLY, "attached for reading");
    CHECK(pmo_psync(bytes) == 0 && pmo_revert(bytes) == 0 && pmo_mark_dirty(bytes, 8) == 0 && pmo_prefault(bytes, 8) == 8);

    /* The child waits, and then has what it psynced. */
    tell(&writer, "++~");
    CHECK(*w == 1 && refreshed(bytes + 100) && *w == 3);
    tell(&writer, "+");
    CHECK(refreshed(bytes) && *w == 5 && !refreshed(bytes));

    /* The object would grow over a mapping of this process: it is inaccessible until that is gone.
     */
    void *taken = mmap(bytes + (64 << 10), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(taken == bytes + (64 << 10));
    tell(&writer, "g");
    FAILS(pmo_refresh(bytes, NULL) == -1, PMO_ERR_ADDRESS_TAKEN, "refresh object \"w\"");
    FAILS(pmo_refresh(bytes, NULL) == -1, PMO_ERR_ADDRESS_TAKEN, "refresh object \"w\"");
    FAILS(pmo_object(bytes, &known) == -1, PMO_ERR_NOT_ATTACHED, "");
    CHECK(munmap(taken, 4096) == 0 && refreshed(bytes) && *w == 5 && bytes[(1 << 20) - 1] == 9);
    CHECK(pmo_object(bytes + (1 << 20) - 1, &known) == 0 && known.size == 1 << 20);

    tell(&writer, "+~");
    end(&writer);
    CHECK(*w == 5 && refreshed(bytes) && *w == 6 && !refreshed(bytes));
    writer = begin(path);
    tell(&writer, "a+++d");
    CHECK(refreshed(bytes) && *w == 9);

    CHECK(pmo_rename(pool, "w", "v", NULL, 0) == 0);
    FAILS(pmo_refresh(bytes, NULL) == -1, PMO_ERR_NOT_FOUND, "\"w\"");
    CHECK(pmo_create(pool, "w", 8192) == 0);
    FAILS(pmo_refresh(bytes, NULL) == -1, PMO_ERR_NOT_FOUND, "another object");
    CHECK(*w == 9 && bytes[(1 << 20) - 1] == 9);
    CHECK(pmo_destroy(pool, "w", NULL, 0) == 0 && pmo_rename(pool, "v", "w", NULL, 0) == 0);
    tell(&writer, "a+");
    CHECK(refreshed(bytes) && *w == 10 && pmo_detach(bytes) == 0);
    FAILS(pmo_detach(bytes) == -1, PMO_ERR_NOT_ATTACHED, "");
    end(&writer);
    CHECK(load(pool, "w") == 10);
}

static void snap(pmo_pool *pool)
{
    CHECK(pmo_snapshot(pool, "pages", "s", NULL, 0) == 0 && pmo_destroy(pool, "s", NULL, 0) == 0);
}

/* Fills the pool's free space. */
static void fill(pmo_pool *pool)
{
    struct pmo_pool_info info;
    while (pmo_pool_info(pool, &info) == 0 && info.largest_free > 64 * PAGE) {
        uint64_t size = info.largest_free - 16 * PAGE;
        CHECK(pmo_create(pool, "filler", size) == 0);
        char *filler = pmo_attach(pool, "filler", PMO_WRITE, NULL, 0);
        CHECK(filler);
        memset(filler, 0x55, size);
        CHECK(pmo_psync(filler) == 0 && pmo_detach(filler) == 0);
        char name[32];
        snprintf(name, sizeof name, "filler %d", (int)info.objects);
        CHECK(pmo_rename(pool, "filler", name, NULL, 0) == 0);
    }
}

/* Snapshots come and go before a process touches its pages, which stay intact. */
static void untouched(const char *path, int shared, int growing)
{
    char another[4096];
    CHECK(snprintf(another, sizeof another, "%s.untouched", path) < (int)sizeof another);
    pmo_pool *pool = pmo_format(another, 64 << 20, PMO_FORCE);
    CHECK(pool && pmo_create(pool, "pages", PAGES * PAGE) == 0);
    struct writer writer = begin(another);
    tell(&writer, "AId");
    if (shared) {
        tell(&writer, "AU");
        CHECK(pmo_snapshot(pool, "pages", "kept", NULL, 0) == 0);
        tell(&writer, "dA");
        CHECK(pmo_destroy(pool, "kept", NULL, 0) == 0);
    } else
        tell(&writer, "A");
    for (int round = 0; round < 6; round++) {
        tell(&writer, growing && round == 2 ? "SG" : "S");
        snap(pool);
    }
    fill(pool);
    tell(&writer, growing ? "CZ" : "C");
    end(&writer);
    CHECK(pmo_close(pool) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    CHECK(pool);
    kept(pool);
    arguments(pool, argv[1]);
    keys(pool);
    parts(pool);
    back(pool);
    ends(pool);
    full(argv[1]);
    follow(pool, argv[1]);
    untouched(argv[1], 0, 0);
    untouched(argv[1], 1, 0);
    untouched(argv[1], 0, 1);
    untouched(argv[1], 1, 1);
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
