/* Calls that must fail and change nothing: bad-input.c POOL. Accesses that must fault: bad-input.c
 * POOL WHICH. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/mman.h>

struct number {
    long value;
};
struct wider {
    long value;
    long more;
};

PMO_TYPE(number, PMO_FIELD(long, value))
PMO_TYPE(wider, PMO_FIELD(long, value), PMO_FIELD(long, more))

/* The same name, with another layout. */
static const struct pmo_type *renamed(void)
{
    static struct pmo_type type;
    type = *PMO_TYPEOF(wider);
    type.name = PMO_TYPEOF(number)->name;
    return &type;
}

static int64_t blocks(void *heap)
{
    struct pmo_heap_stats stats;
    CHECK(pmo_heap_check(heap, NULL, NULL) == 0 && pmo_heap_stats(heap, &stats) == 0);
    return (int64_t)stats.blocks;
}

static void arguments(pmo_pool *pool)
{
    static char long_name[600];
    memset(long_name, 'x', sizeof long_name - 1);
    FAILS(!pmo_open(NULL, 0), PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_open("\xff", 0), PMO_ERR_ARGUMENT, "UTF-8");
    FAILS(!pmo_open("/", 8), PMO_ERR_ARGUMENT, "flags 0x8");
    struct pmo_pool_options with = {.medium = 9};
    FAILS(!pmo_open_with("/", &with), PMO_ERR_ARGUMENT, "no medium 9");
    with = (struct pmo_pool_options){.tracking = 99};
    FAILS(!pmo_format_with("/", 1, &with), PMO_ERR_ARGUMENT, "no tracking 99");
    with = (struct pmo_pool_options){.reserved = 1};
    FAILS(!pmo_open_or_format_with("/", 1, &with), PMO_ERR_ARGUMENT, "reserved");
    with = (struct pmo_pool_options){.flags = PMO_FORCE};
    FAILS(!pmo_open_with("/", &with), PMO_ERR_ARGUMENT, "flags 0x2");
    FAILS(!pmo_open_with("/", NULL), PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_open("/nowhere/at/all", 0), PMO_ERR_NO_POOL, "/nowhere/at/all");
    FAILS(pmo_close(NULL) == -1, PMO_ERR_ARGUMENT, "not open");
    FAILS(pmo_close((pmo_pool *)0x1234) == -1, PMO_ERR_ARGUMENT, "not open");
    FAILS(pmo_create((pmo_pool *)0x1234, "a", 1) == -1, PMO_ERR_ARGUMENT, "not open");
    FAILS(pmo_create(NULL, "a", 1) == -1, PMO_ERR_ARGUMENT, "PMO_POOL");
    FAILS(!pcreate("a", 1, NULL), PMO_ERR_ARGUMENT, "PMO_POOL");
    FAILS(pmo_create(pool, NULL, 1) == -1, PMO_ERR_ARGUMENT, "name is NULL");
    FAILS(pmo_create(pool, "\xc3", 1) == -1, PMO_ERR_ARGUMENT, "UTF-8");
    FAILS(pmo_create(pool, "", 1) == -1, PMO_ERR_BAD_NAME, "");
    FAILS(pmo_create(pool, long_name, 1) == -1, PMO_ERR_BAD_NAME, "");
    FAILS(pmo_create(pool, "a", 0) == -1, PMO_ERR_BAD_SIZE, "");
    FAILS(pmo_create(pool, "a", UINT64_MAX) == -1, PMO_ERR_BAD_SIZE, "");
    FAILS(pmo_create(pool, "a", 1 << 30) == -1, PMO_ERR_NO_ROOM, "");
    FAILS(pmo_create_with(pool, "a", NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    struct pmo_create_options odd = {.size = 1, .durability = 99};
    FAILS(pmo_create_with(pool, "a", &odd) == -1, PMO_ERR_ARGUMENT, "durability 99");
    struct pmo_create_options keyless = {.size = 1, .read_key_len = 3};
    FAILS(pmo_create_with(pool, "a", &keyless) == -1, PMO_ERR_ARGUMENT, "read key is NULL");
    FAILS(pmo_stat(pool, "a", NULL) == -1, PMO_ERR_NOT_FOUND, "\"a\"");
    FAILS(pmo_list(pool, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_attach(pool, "a", PMO_READ, NULL, 0), PMO_ERR_NOT_FOUND, "\"a\"");
    FAILS(!pmo_attach(pool, "a", 'x', NULL, 0), PMO_ERR_ARGUMENT, "none of PMO_READ");
    struct {
        struct pmo_attach_options known;
        uint64_t unknown;
    } later = {{.size = sizeof later, .permission = PMO_READ}, 1};
    FAILS(!pmo_attach_with(pool, "a", &later.known), PMO_ERR_ARGUMENT, "does not know");
    FAILS(!pmo_attach(pool, "a", PMO_READ, NULL, 5), PMO_ERR_ARGUMENT, "key is NULL");
    FAILS(!pmo_attach_at(pool, pool, PMO_READ, NULL, 0), PMO_ERR_ARGUMENT, "no object");
    FAILS(pmo_detach(NULL) == -1, PMO_ERR_NOT_ATTACHED, "0x0");
    FAILS(pmo_psync(NULL) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_psync(&pool) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_prefault(NULL, 8) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_mark_dirty(NULL, 8) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_mark_dirty(&pool, 8) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_psync_flags(NULL, 2) == -1, PMO_ERR_ARGUMENT, "flags");
    FAILS(pmo_psync_all(NULL, 1, 0) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(pmo_psync_all((void **)&pool, SIZE_MAX, 0) == -1, PMO_ERR_ARGUMENT, "longer than memory");
    FAILS(pmo_pool_info(pool, (struct pmo_pool_info *)1) == -1, PMO_ERR_ARGUMENT, "misaligned");
    FAILS(pmo_pool_grow(pool, 1 << 20) == -1, PMO_ERR_BAD_SIZE, "becomes longer, not shorter");
    FAILS(pmo_create(pool, "large", (uint64_t)1 << 40) == -1, PMO_ERR_NO_ROOM, "pmo_pool_grow");
    CHECK(pmo_psync_all(NULL, 0, 0) == 0);
    FAILS(pmo_grow(NULL, 1) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_revert(NULL) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_object(NULL, NULL) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_heap_format(NULL, 0) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(!pmo_malloc(NULL, 1), PMO_ERR_NOT_ATTACHED, "");
    FAILS(!pmo_realloc(NULL, NULL, 1), PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_usable_size(NULL) == 0, PMO_ERR_NOT_ATTACHED, "");
    CHECK(strcmp(pmo_strerror(-5), "no such error") == 0);
}

static void objects(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "plain", 65536) == 0);
    char *plain = pmo_attach(pool, "plain", PMO_WRITE, NULL, 0);
    CHECK(plain);
    FAILS(!pmo_attach(pool, "plain", PMO_WRITE, NULL, 0), PMO_ERR_HELD, "\"plain\"");
    struct pmo_attach_options with = {.permission = PMO_READ};
    FAILS(!pmo_attach_with(pool, "plain", NULL), PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_attach_with(pool, "plain", &with), PMO_ERR_ARGUMENT, "size");
    with = (struct pmo_attach_options){.size = sizeof with, .permission = 'x'};
    FAILS(!pmo_attach_with(pool, "plain", &with), PMO_ERR_ARGUMENT, "PMO_SNAPSHOT");
    with = (struct pmo_attach_options){.size = sizeof with, .permission = PMO_WRITE, .tracking = 99};
    FAILS(!pmo_attach_with(pool, "plain", &with), PMO_ERR_ARGUMENT, "no tracking 99");
    with = (struct pmo_attach_options){.size = sizeof with, .permission = PMO_SNAPSHOT, .wait = 1};
    FAILS(!pmo_attach_with(pool, "plain", &with), PMO_ERR_ARGUMENT, "a snapshot");
    FAILS(pmo_destroy(pool, "plain", NULL, 0) == -1, PMO_ERR_HELD, "");
    FAILS(pmo_detach(plain + 1) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_stat(pool, "plain", NULL) == -1, PMO_ERR_ARGUMENT, "filled in");
    FAILS(pmo_object(plain, NULL) == -1, PMO_ERR_ARGUMENT, "filled in");
    FAILS(pmo_psync(plain + 65536) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_grow(plain, 1) == -1, PMO_ERR_BAD_SIZE, "");
    FAILS(!pmo_malloc(plain, 1), PMO_ERR_NOT_A_HEAP, "\"plain\"");
    FAILS(pmo_heap_open(plain, 0) == -1, PMO_ERR_NOT_A_HEAP, "");
    FAILS(pmo_heap_open(plain, 4) == -1, PMO_ERR_ARGUMENT, "flags");
    plain[8] = 1;
    FAILS(pmo_heap_format(plain, 0) == -1, PMO_ERR_EXISTS, "overwrite");
    FAILS(pmo_heap_open_or_format(plain, 0) == -1, PMO_ERR_EXISTS, "overwrite");
    CHECK(pmo_detach(plain) == 0);
    FAILS(pmo_detach(plain) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_psync(plain) == -1, PMO_ERR_NOT_ATTACHED, "");
}

static void address(pmo_pool *pool)
{
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, "plain", &stat) == 0);
    void *wanted = (void *)(uintptr_t)stat.address;
    void *taken = mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(taken == wanted);
    strcpy(taken, "mine");
    FAILS(!pmo_attach(pool, "plain", PMO_WRITE, NULL, 0), PMO_ERR_ADDRESS_TAKEN, "taken by anonymous memory");
    CHECK(strcmp(taken, "mine") == 0 && munmap(taken, 4096) == 0);
    CHECK(pmo_attach(pool, "plain", PMO_WRITE, NULL, 0) == wanted && pmo_detach(wanted) == 0);
}

static void heap(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "heap", 1 << 20) == 0 && pmo_create(pool, "other", 1 << 20) == 0);
    char *heap = pmo_attach(pool, "heap", PMO_WRITE, NULL, 0);
    char *other = pmo_attach(pool, "other", PMO_WRITE, NULL, 0);
    CHECK(heap && other && pmo_heap_format(heap, 0) == 0 && pmo_heap_format(other, 0) == 0);
    FAILS(pmo_heap_format(heap, 0) == -1, PMO_ERR_EXISTS, "");
    struct number *number = pmo_malloc(heap, sizeof *number);
    char *large = pmo_malloc(heap, 100000), *gone = pmo_malloc(heap, 48), *stranger = pmo_malloc(other, 48);
    CHECK(number && large && gone && stranger && pmo_free(gone) == 0);
    int64_t before = blocks(heap);

    /* double free, foreign pointer */
    FAILS(pmo_free(gone) == -1, PMO_ERR_DOUBLE_FREE, "free already");
    FAILS(!pmo_realloc(heap, gone, 10), PMO_ERR_DOUBLE_FREE, "");
    FAILS(pmo_usable_size(gone) == 0, PMO_ERR_DOUBLE_FREE, "");
    FAILS(pmo_free(&before) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_free(malloc(1)) == -1, PMO_ERR_NOT_ATTACHED, "");
    FAILS(pmo_free((char *)number + 8) == -1, PMO_ERR_NOT_A_BLOCK, "inside the block");
    FAILS(pmo_free(large + 4096) == -1, PMO_ERR_NOT_A_BLOCK, "inside the block");
    FAILS(pmo_free(heap) == -1, PMO_ERR_NOT_A_BLOCK, "");
    FAILS(pmo_free(heap + (1 << 20) - 16) == -1, PMO_ERR_NOT_A_BLOCK, "");

    /* overflowed size, heap full, alignment */
    FAILS(!pmo_malloc(heap, SIZE_MAX), PMO_ERR_BAD_SIZE, "");
    FAILS(!pmo_malloc(heap, (size_t)PTRDIFF_MAX + 1), PMO_ERR_BAD_SIZE, "");
    FAILS(!pmo_calloc(heap, SIZE_MAX / 2, 3), PMO_ERR_BAD_SIZE, "times");
    FAILS(!pmo_realloc(heap, large, SIZE_MAX), PMO_ERR_BAD_SIZE, "");
    FAILS(!pmo_malloc(heap, 2 << 20), PMO_ERR_HEAP_FULL, "no room");
    FAILS(!pmo_realloc(heap, large, 2 << 20), PMO_ERR_HEAP_FULL, "");
    FAILS(!pmo_aligned_alloc(heap, 3, 1), PMO_ERR_BAD_ALIGNMENT, "");
    FAILS(!pmo_aligned_alloc(heap, 0, 1), PMO_ERR_BAD_ALIGNMENT, "");
    FAILS(!pmo_aligned_alloc(heap, 4 << 20, 1), PMO_ERR_BAD_ALIGNMENT, "");
    CHECK(blocks(heap) == before);

    /* roots */
    FAILS(!pmo_root(heap, "number", PMO_TYPEOF(number)), PMO_ERR_ROOT_MISSING, "\"number\" (pmo_roots lists");
    FAILS(!pmo_root(heap, "`Heap::roots`", NULL), PMO_ERR_ROOT_MISSING, "\"`Heap::roots`\" (pmo_roots lists");
    FAILS(pmo_root_create(heap, "number", number, 8, NULL) == -1, PMO_ERR_ARGUMENT, "type is NULL");
    FAILS(pmo_root_create(heap, NULL, number, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_ARGUMENT, "name");
    FAILS(pmo_root_create(heap, "", number, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_BAD_NAME, "");
    FAILS(pmo_root_create(heap, "number", &before, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_NOT_A_BLOCK, "");
    FAILS(pmo_root_create(heap, "number", stranger, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_NOT_A_BLOCK, "");
    CHECK(pmo_root_create(heap, "number", number, 8, PMO_TYPEOF(number)) == 0);
    FAILS(pmo_root_create(heap, "number", number, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_ROOT_EXISTS, "");
    FAILS(pmo_free(number) == -1, PMO_ERR_ROOT_EXISTS, "that of root \"number\" (remove the root first (pmo_root_remove)");
    FAILS(pmo_can_free(number) == -1, PMO_ERR_ROOT_EXISTS, "");
    FAILS(!pmo_realloc(heap, number, 100), PMO_ERR_ROOT_EXISTS, "");
    CHECK(pmo_can_free(large) == 0 && pmo_can_free(NULL) == 0);
    CHECK(pmo_can_free(gone) == -1);
    FAILS(!pmo_root(heap, "number", PMO_TYPEOF(wider)), PMO_ERR_ROOT_TYPE, "another type");
    FAILS(!pmo_root(heap, "number", renamed()), PMO_ERR_ROOT_TYPE, "another layout");
    FAILS(!pmo_root(heap, "number", renamed()), PMO_ERR_ROOT_TYPE, "more: long at 8, size 8");
    struct pmo_type hollow = {"hollow", 8, NULL, 3, PMO_STRUCT, 8};
    FAILS(!pmo_root(heap, "number", &hollow), PMO_ERR_ARGUMENT, "fields of hollow is NULL");
    static const struct pmo_field apart[] = {{"a", "int64_t", 0, 8, NULL, NULL}, {"b", "int64_t", 8, 8, NULL, NULL}};
    static const struct pmo_field over[] = {{"a", "int64_t", 4, 8, NULL, NULL}, {"b", "int64_t", 0, 8, NULL, NULL}};
    static const struct pmo_field huge[] = {{"a", "char[]", 8, SIZE_MAX, NULL, NULL}};
    struct pmo_type pair = {"pair", 16, apart, 2, PMO_STRUCT, 8}, narrow = {"narrow", 12, apart, 2, PMO_STRUCT, 4};
    struct pmo_type overlap = {"overlap", 16, over, 2, PMO_STRUCT, 8}, beyond = {"beyond", 16, huge, 1, PMO_STRUCT, 8};
    FAILS(pmo_root_create(heap, "pair", number, 8, &pair) == -1, PMO_ERR_ARGUMENT, "a pair has 16 bytes, the root 8");
    FAILS(pmo_root_create(heap, "pair", number, 8, &narrow) == -1, PMO_ERR_ARGUMENT, "field b of narrow");
    FAILS(pmo_root_create(heap, "pair", number, 16, &overlap) == -1, PMO_ERR_ARGUMENT, "overlaps");
    FAILS(pmo_root_create(heap, "pair", number, 16, &beyond) == -1, PMO_ERR_ARGUMENT, "ends behind");
    FAILS(pmo_root_create(heap, "pair", large, 1 << 19, &pair) == -1, PMO_ERR_BAD_SIZE, "524288 bytes of a root");
    FAILS(pmo_root_remove(heap, "none") == -1, PMO_ERR_ROOT_MISSING, "");
    CHECK(blocks(heap) == before && pmo_psync(heap) == 0 && pmo_detach(heap) == 0);
    FAILS(pmo_free(number) == -1, PMO_ERR_NOT_ATTACHED, "");

    /* for reading */
    CHECK(pmo_attach(pool, "heap", PMO_READ, NULL, 0) == heap);
    FAILS(!pmo_malloc(heap, 8), PMO_ERR_READ_ONLY, "attached for reading");
    FAILS(!pmo_calloc(heap, 1, 8), PMO_ERR_READ_ONLY, "");
    FAILS(pmo_free(number) == -1, PMO_ERR_READ_ONLY, "");
    FAILS(!pmo_realloc(heap, large, 8), PMO_ERR_READ_ONLY, "");
    FAILS(pmo_root_remove(heap, "number") == -1, PMO_ERR_READ_ONLY, "");
    FAILS(pmo_root_create(heap, "more", number, 8, PMO_TYPEOF(number)) == -1, PMO_ERR_READ_ONLY, "");
    FAILS(pmo_grow(heap, 2 << 20) == -1, PMO_ERR_READ_ONLY, "attached for reading");
    CHECK(pmo_detach(heap) == 0);

    /* debug mode */
    CHECK(pmo_attach(pool, "heap", PMO_WRITE, NULL, 0) == heap && pmo_heap_open(heap, PMO_HEAP_DEBUG) == 0);
    char *block = pmo_malloc(heap, 40);
    CHECK(block);
    block[40] = 1;
    CHECK(pmo_heap_check(heap, NULL, NULL) == 1);
    FAILS(pmo_free(block) == -1, PMO_ERR_OVERWRITTEN, "");
    CHECK(pmo_detach(heap) == 0);

    /* made by a newer version */
    CHECK(pmo_attach(pool, "heap", PMO_WRITE, NULL, 0) == heap);
    ((uint32_t *)heap)[2] = 999;
    CHECK(pmo_psync(heap) == 0);
    FAILS(!pmo_malloc(heap, 8), PMO_ERR_VERSION, "version 999");
    FAILS(!pmo_root(heap, "number", PMO_TYPEOF(number)), PMO_ERR_VERSION, "newer");
    CHECK(pmo_detach(heap) == 0 && pmo_detach(other) == 0);
}

static void faults(pmo_pool *pool, const char *which)
{
    CHECK(pmo_create(pool, which, 65536) == 0);
    char *object = pmo_attach(pool, which, PMO_WRITE, NULL, 0);
    CHECK(object && pmo_heap_format(object, 0) == 0);
    volatile char *block = pmo_malloc(object, 8);
    CHECK(block && pmo_psync(object) == 0 && pmo_detach(object) == 0);
    if (strcmp(which, "use after detach") == 0)
        printf("%d\n", *block);
    CHECK(pmo_attach(pool, which, PMO_READ, NULL, 0) == object);
    if (strcmp(which, "store while reading") == 0)
        *block = 1;
}

static void pools(pmo_pool *pool, const char *path)
{
    char second[4096];
    CHECK(snprintf(second, sizeof second, "%s.second", path) < (int)sizeof second);
    pmo_pool *other = pmo_open_or_format(second, 4 << 20, 0);
    CHECK(other && pmo_create(other, "plain", 65536) == 0);
    void *both[] = {pmo_attach(pool, "plain", PMO_WRITE, NULL, 0), pmo_attach(other, "plain", PMO_WRITE, NULL, 0)};
    CHECK(both[0] && both[1]);
    FAILS(pmo_psync_all(both, 2, 0) == -1, PMO_ERR_DIFFERENT_POOLS, "different pools");
    CHECK(pmo_detach(both[0]) == 0 && pmo_detach(both[1]) == 0 && pmo_close(other) == 0);
}

static void formatted_anew(const char *path)
{
    char third[4096];
    CHECK(snprintf(third, sizeof third, "%s.third", path) < (int)sizeof third);
    pmo_pool *idle = pmo_open_or_format(third, 8 << 20, 0);
    CHECK(idle && pmo_create(idle, "a", 4096) == 0);
    struct pmo_pool_options with = {.flags = PMO_FORCE};
    pmo_pool *other = pmo_format_with(third, 8 << 20, &with);
    CHECK(other && pmo_close(other) == 0);
    struct pmo_stat stat;
    FAILS(pmo_create(idle, "b", 4096) == -1, PMO_ERR_GONE, "formatted anew while in use");
    FAILS(!pmo_attach(idle, "a", PMO_WRITE, NULL, 0), PMO_ERR_GONE, "open the pool again");
    FAILS(pmo_stat(idle, "a", &stat) == -1, PMO_ERR_GONE, "open the pool again");
    pmo_pool *again = pmo_open(third, 0);
    CHECK(again && pmo_create(again, "b", 4096) == 0);
    FAILS(pmo_stat(again, "a", &stat) == -1, PMO_ERR_NOT_FOUND, "\"a\"");
    char *b = pmo_attach(again, "b", PMO_WRITE, NULL, 0);
    CHECK(b);
    *b = 1;
    CHECK(pmo_psync(b) == 0 && pmo_detach(b) == 0);
    FAILS(pmo_stat(idle, "b", &stat) == -1, PMO_ERR_GONE, "");
    CHECK(pmo_close(idle) == 0 && pmo_stat(again, "b", &stat) == 0 && pmo_close(again) == 0);
    with = (struct pmo_pool_options){.memory_limit = 1};
    FAILS(!pmo_open_with(third, &with), PMO_ERR_UNSUPPORTED, "1048576 bytes of memory");
}

int main(int argc, char **argv)
{
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    CHECK(pool);
    if (argc > 2) {
        faults(pool, argv[2]);
        return 0;
    }
    arguments(pool);
    objects(pool);
    address(pool);
    pools(pool, argv[1]);
    formatted_anew(argv[1]);
    heap(pool);
    CHECK(pmo_close(pool) == 0);
    FAILS(pmo_close(pool) == -1, PMO_ERR_ARGUMENT, "not open");
    puts("done");
    return 0;
}
