/* Every function of pmo.h in its proper use: contract.c POOL. */
#include "check.h"

static int count(const struct pmo_stat *stat, void *context)
{
    CHECK(stat->name[0] != 0 && stat->size > 0);
    ++*(int *)context;
    return 0;
}

static int stop(const struct pmo_stat *stat, void *context)
{
    (void)stat, (void)context;
    return 7;
}

static void pools(pmo_pool *pool, const char *path)
{
    struct pmo_pool_info info;
    CHECK(pmo_pool_info(pool, &info) == 0);
    CHECK(info.version == 2 && info.length == 64 << 20 && info.objects == 0 && info.free > 0);
    pmo_pool *again = pmo_open_or_format(path, 64 << 20, 0);
    CHECK(again != NULL && pmo_create(again, "seen", 4096) == 0);
    CHECK(pmo_close(again) == 0);
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, "seen", &stat) == 0);
    CHECK(strcmp(stat.name, "seen") == 0 && stat.size == 4096 && stat.state == 'D' && stat.holder == 0);
    CHECK(stat.flags == 0 && stat.created > 1600000000);
    int objects = 0;
    CHECK(pmo_list(pool, count, &objects) == 0 && objects == 1);
    CHECK(pmo_list(pool, stop, NULL) == 7);
    CHECK(pmo_rename(pool, "seen", "known", NULL, 0) == 0);
    CHECK(pmo_resize(pool, "known", 8192, NULL, 0) == 0);
    CHECK(pmo_stat(pool, "known", &stat) == 0 && stat.size == 8192);
    CHECK(pmo_destroy(pool, "known", NULL, 0) == 0);
    CHECK(pmo_pool_grow(pool, 128 << 20) == 0 && pmo_pool_info(pool, &info) == 0 && info.length == 128 << 20);
    CHECK(pmo_create(pool, "large", 80 << 20) == 0 && pmo_destroy(pool, "large", NULL, 0) == 0);
}

static void objects(pmo_pool *pool)
{
    struct pmo_create_options options = {.size = 4096, .reach = 1 << 20, .write_key = "secret", .write_key_len = 6};
    CHECK(pmo_create_with(pool, "locked", &options) == 0);
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, "locked", &stat) == 0 && stat.flags == PMO_STAT_WRITE_KEY && stat.reach >= 1 << 20);
    char *locked = pmo_attach(pool, "locked", PMO_WRITE, "secret", 6);
    CHECK((uintptr_t)locked == stat.address);
    strcpy(locked, "kept");
    CHECK(pmo_psync(locked + 100) == 0);
    strcpy(locked, "lost");
    struct pmo_object object;
    CHECK(pmo_object(locked + 4095, &object) == 0);
    CHECK(object.base == locked && object.size == 4096 && object.writable && object.psyncs == 1);
    CHECK(strcmp(object.name, "locked") == 0);
    CHECK(pmo_detach(locked) == 0);

    CHECK(pmo_attach_at(pool, locked, PMO_READ, NULL, 0) == locked);
    CHECK(pmo_attach(pool, "locked", PMO_READ, NULL, 0) == locked);
    CHECK(strcmp(locked, "kept") == 0 && pmo_psync(locked) == 0);
    CHECK(pmo_detach(locked) == 0 && strcmp(locked, "kept") == 0);
    CHECK(pmo_detach(locked) == 0);

    CHECK(pmo_attach(pool, "locked", PMO_WRITE, "secret", 6) == locked);
    strcpy(locked, "lost");
    CHECK(pmo_revert(locked + 100) == 0 && strcmp(locked, "kept") == 0);
    CHECK(pmo_grow(locked, 8192) == 0);
    locked[8191] = 1;
    CHECK(pmo_prefault(locked + 7, 100) == 100 && pmo_prefault(locked, (size_t)-1) == 8192);
    CHECK(pmo_mark_dirty(locked + 7, 100) == 0 && pmo_mark_dirty(locked, (size_t)-1) == 0);
    CHECK(pmo_psync_flags(locked, PMO_PSYNC_CUT) == 0 && pmo_detach(locked) == 0);
    CHECK(pmo_destroy(pool, "locked", "secret", 6) == 0);

    CHECK(pmo_create(pool, "one", 4096) == 0 && pmo_create(pool, "two", 4096) == 0);
    int *both[2] = {pmo_attach(pool, "one", 'w', NULL, 0), pmo_attach(pool, "two", 'w', NULL, 0)};
    CHECK(both[0] && both[1]);
    for (unsigned flags = 0; flags <= PMO_PSYNC_CUT; flags++) {
        *both[0] = *both[1] = 10 + (int)flags;
        CHECK(pmo_psync_all((void *const *)both, 2, flags) == 0);
    }
    *both[0] = 99;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "two" : "one";
        CHECK(pmo_detach(both[i]) == 0 && pmo_attach(pool, name, 'r', NULL, 0) == both[i]);
        CHECK(*both[i] == 11 && pmo_detach(both[i]) == 0);
    }
}

static void options(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "marked", 8192) == 0);
    struct pmo_attach_options with = {.size = sizeof with, .permission = PMO_WRITE, .tracking = PMO_TRACKING_EXPLICIT};
    char *marked = pmo_attach_with(pool, "marked", &with);
    struct pmo_object known;
    CHECK(marked && pmo_object(marked, &known) == 0 && known.tracking == PMO_TRACKING_EXPLICIT && known.writable);
    marked[100] = marked[5000] = 7;
    CHECK(pmo_mark_dirty(marked + 100, 1) == 0 && pmo_psync(marked) == 0);
    CHECK(pmo_detach(marked) == 0);
    with = (struct pmo_attach_options){.size = sizeof with, .permission = PMO_SNAPSHOT};
    CHECK(pmo_attach_with(pool, "marked", &with) == marked);
    CHECK(marked[100] == 7 && marked[5000] == 0 && pmo_refresh(marked, NULL) == 0 && pmo_detach(marked) == 0);
    /* A program of an older release has a shorter struct, one of a newer release a longer one. */
    with = (struct pmo_attach_options){.size = offsetof(struct pmo_attach_options, tracking), .permission = PMO_READ,
                                       .tracking = 99};
    CHECK(pmo_attach_with(pool, "marked", &with) == marked && pmo_detach(marked) == 0);
    struct {
        struct pmo_attach_options known;
        uint64_t unknown;
    } later = {.known = {.size = sizeof later, .permission = PMO_READ}};
    CHECK(pmo_attach_with(pool, "marked", &later.known) == marked && pmo_detach(marked) == 0);
    CHECK(pmo_destroy(pool, "marked", NULL, 0) == 0);
}

static void chosen(const char *path)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.chosen", path);
    struct pmo_pool_options options = {.medium = PMO_MEDIUM_FILE, .tracking = PMO_TRACKING_MPROTECT, .label = "chosen",
                                       .window_start = 0x6b0000000000, .window_len = 1 << 30};
    pmo_pool *pool = pmo_format_with(other, 16 << 20, &options);
    struct pmo_pool_info info;
    CHECK(pool && pmo_pool_info(pool, &info) == 0 && info.medium == PMO_MEDIUM_FILE);
    CHECK(pmo_create(pool, "object", 4096) == 0);
    char *object = pmo_attach(pool, "object", PMO_WRITE, NULL, 0);
    struct pmo_object known;
    CHECK((uintptr_t)object >= 0x6b0000000000 && (uintptr_t)object < 0x6b0000000000 + (1 << 30));
    CHECK(pmo_object(object, &known) == 0 && known.tracking == PMO_TRACKING_MPROTECT);
    CHECK(pmo_detach(object) == 0 && pmo_close(pool) == 0);
    options = (struct pmo_pool_options){.tracking = PMO_TRACKING_EXPLICIT, .memory_limit = 1 << 20};
    pool = pmo_open_or_format_with(other, 16 << 20, &options);
    object = pmo_attach(pool, "object", PMO_WRITE, NULL, 0);
    CHECK(pmo_object(object, &known) == 0 && known.tracking == PMO_TRACKING_EXPLICIT);
    CHECK(pmo_detach(object) == 0 && pmo_close(pool) == 0);
    options = (struct pmo_pool_options){.flags = PMO_READ_ONLY | PMO_UNTRUSTED};
    pool = pmo_open_with(other, &options);
    CHECK(pmo_attach(pool, "object", PMO_READ, NULL, 0) == object && pmo_detach(object) == 0 && pmo_close(pool) == 0);
}

struct point {
    double x, y;
};

struct place {
    char name[16];
    struct point where, corners[2];
    struct place *next;
    unsigned visits : 3;
};

PMO_TYPE(point, PMO_FIELD(double, x), PMO_FIELD(double, y))
PMO_TYPE(place, PMO_FIELD(char[16], name), PMO_NESTED(struct point, where, point),
         PMO_NESTED(struct point[2], corners, point), PMO_POINTS_TO(struct place *, next, place))

static int block(void *start, size_t size, void *context)
{
    CHECK(start && size >= 16);
    ++*(int *)context;
    return 0;
}

static int root(const struct pmo_root *root, void *context)
{
    CHECK(strcmp(root->name, "home") == 0 && strcmp(root->type, "struct place") == 0);
    CHECK(strstr(root->layout, "  y: double at 8, size 8\n") != NULL);
    CHECK(root->size == sizeof(struct place) && root->fingerprint[0] && root->address);
    ++*(int *)context;
    return 0;
}

static void finding(uint64_t offset, const char *what, void *context)
{
    fprintf(stderr, "%#lx: %s\n", (unsigned long)offset, what);
    ++*(int *)context;
}

static void heap(pmo_pool *pool)
{
    struct pmo_create_options options = {.size = 1 << 20, .reach = 64 << 20};
    CHECK(pmo_create_with(pool, "heap", &options) == 0);
    char *heap = pmo_attach(pool, "heap", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_format(heap, 0) == 0);
    struct place *home = pmo_calloc(heap, 1, sizeof *home);
    CHECK(home && home->next == NULL && (uintptr_t)home % 16 == 0);
    strcpy(home->name, "home");
    home->next = pmo_malloc(heap, sizeof *home);
    CHECK(home->next && pmo_usable_size(home->next) >= sizeof *home);
    char *text = pmo_realloc(heap, NULL, 10);
    CHECK(text);
    strcpy(text, "012345678");
    text = pmo_realloc(heap, text, 100000);
    CHECK(text && strcmp(text, "012345678") == 0);
    void *aligned = pmo_aligned_alloc(heap, 4096, 100);
    CHECK(aligned && (uintptr_t)aligned % 4096 == 0);
    CHECK(pmo_free(aligned) == 0 && pmo_free(text) == 0 && pmo_free(NULL) == 0);
    CHECK(pmo_root_create(heap, "home", home, sizeof *home, PMO_TYPEOF(place)) == 0);
    CHECK(pmo_psync(home) == 0 && pmo_detach(heap) == 0);

    CHECK(pmo_attach(pool, "heap", PMO_READ, NULL, 0) == heap);
    CHECK(pmo_root(heap, "home", PMO_TYPEOF(place)) == home && pmo_root(heap, "home", NULL) == home);
    int blocks = 0, roots = 0, findings = 0;
    CHECK(pmo_heap_blocks(heap, block, &blocks) == 0 && blocks == 2);
    CHECK(pmo_roots(heap, root, &roots) == 0 && roots == 1);
    struct pmo_heap_stats stats;
    CHECK(pmo_heap_stats(heap, &stats) == 0 && stats.blocks == 2 && stats.roots == 1 && stats.bytes == 1 << 20);
    CHECK(pmo_heap_check(heap, finding, &findings) == 0 && findings == 0);
    CHECK(pmo_detach(heap) == 0);

    CHECK(pmo_attach(pool, "heap", PMO_WRITE, NULL, 0) == heap && pmo_heap_open(heap, PMO_HEAP_GROW) == 0);
    char *large = pmo_malloc(heap, 3 << 20);
    CHECK(large != NULL);
    CHECK((large = pmo_realloc(heap, large, 8 << 20)) != NULL);
    CHECK(pmo_object(heap, &(struct pmo_object){0}) == 0);
    large[(8 << 20) - 1] = 1;
    CHECK(pmo_grow(heap, 24 << 20) == 0);
    CHECK(pmo_heap_stats(heap, &stats) == 0 && stats.bytes == 24 << 20);
    CHECK(pmo_heap_open(heap, PMO_HEAP_DEBUG) == 0 && pmo_heap_open_or_format(heap, PMO_HEAP_DEBUG) == 0);
    CHECK(pmo_free(large) == 0 && pmo_root_remove(heap, "home") == 0);
    CHECK(pmo_psync_flags(heap, PMO_PSYNC_CUT) == 0 && pmo_heap_check(heap, finding, &findings) == 0);
    CHECK(pmo_detach(heap) == 0);

    char layout[600];
    uint64_t fingerprint[2];
    CHECK(pmo_type_describe(PMO_TYPEOF(place), layout, sizeof layout, fingerprint) == 0);
    CHECK(strcmp(layout, "place: size 80, alignment 8\n"
                         "  name: [char; 16] at 0, size 16\n"
                         "  where: point at 16, size 16\n"
                         "  corners: [point; 2] at 32, size 32\n"
                         "  next: *mut place at 64, size 8\n"
                         "point: size 16, alignment 8\n"
                         "  x: double at 0, size 8\n"
                         "  y: double at 8, size 8") == 0);
    char cut[10];
    CHECK(pmo_type_describe(PMO_TYPEOF(place), cut, sizeof cut, NULL) == 0 && strcmp(cut, "place: si") == 0);
}

static void table_one(const char *path)
{
    CHECK(pmo_use(path) == 0);
    char *object = pcreate("object", 4096, "key");
    CHECK(object && attach("object", 'w', "key") == object);
    strcpy(object, "kept");
    CHECK(psync(object) == 0 && detach(object) == 0);
    CHECK(attach("object", 'r', "key") == object && strcmp(object, "kept") == 0 && detach(object) == 0);
    CHECK(pdestroy("object", "key") == 0);
    object = pcreate("object", 4096, NULL);
    CHECK(object && attach(object, 'w') == object && detach(object) == 0 && pdestroy("object", NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && strcmp(pmo_version(), "0.1.0") == 0 && pmo_errno() == 0);
    CHECK(strcmp(pmo_error_message(), "") == 0 && strcmp(pmo_strerror(PMO_ERR_HELD), "") != 0);
    pmo_pool *pool = pmo_format(argv[1], 64 << 20, 0);
    CHECK(pool != NULL);
    pools(pool, argv[1]);
    objects(pool);
    options(pool);
    chosen(argv[1]);
    heap(pool);
    table_one(argv[1]);
    CHECK(pmo_wait(pool, 1) == 0 && pmo_close(pool) == 0 && pmo_errno() == 0);
    CHECK(pmo_wait(pool, 1) == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
    puts("done");
    return 0;
}
