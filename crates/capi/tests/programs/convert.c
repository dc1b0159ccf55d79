/* Three versions of a program, whose struct item changes: convert POOL VERSION MODE. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

/* Version 1. */
struct item_v1 {
    int32_t number;
    char *name;
};
PMO_TYPE_WAS(item_v1, "struct item", PMO_FIELD(int32_t, number), PMO_FIELD(char *, name))

/* Version 2: a wider number, and a count. */
struct item_v2 {
    int64_t number;
    char *name;
    int32_t count;
};
PMO_TYPE_WAS(item_v2, "struct item", PMO_FIELD(int64_t, number), PMO_FIELD(char *, name), PMO_FIELD(int32_t, count))

/* Version 3: names of bounded length, in place. */
struct item {
    int64_t number;
    int32_t count;
    char name[20];
};
PMO_TYPE(item, PMO_FIELD(int64_t, number), PMO_FIELD(int32_t, count), PMO_FIELD(char[20], name))

struct other {
    double half;
};
PMO_TYPE(other, PMO_FIELD(double, half))

static const char *mode;
static void *object;
static int converted, dropped;

static int to_v2(const void *old_value, void *new_value, void *context)
{
    const struct item_v1 *old = old_value;
    struct item_v2 *fresh = new_value;
    ++converted;
    fresh->number = old->number;
    fresh->count = *(int *)context;
    fresh->name = pmo_malloc(object, strlen(old->name) + 1);
    CHECK(fresh->name != NULL);
    strcpy(fresh->name, old->name);
    if (strcmp(mode, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(mode, "full") == 0)
        while (pmo_malloc(object, 4096) != NULL)
            ;
    return strcmp(mode, "fail") == 0 ? 7 : strcmp(mode, "full") == 0;
}

static void drop_v1(void *old_value, void *context)
{
    (void)context;
    ++dropped;
    CHECK(pmo_free(((struct item_v1 *)old_value)->name) == 0);
    if (strcmp(mode, "free twice") == 0)
        CHECK(pmo_free(old_value) == 0);
}

static int to_v3(const void *old_value, void *new_value, void *context)
{
    const struct item_v2 *old = old_value;
    struct item *fresh = new_value;
    (void)context;
    ++converted;
    fresh->number = old->number;
    fresh->count = old->count;
    snprintf(fresh->name, sizeof fresh->name, "%s", old->name);
    return strcmp(mode, "fail late") == 0 ? 9 : 0;
}

static void drop_v2(void *old_value, void *context)
{
    (void)context;
    ++dropped;
    CHECK(pmo_free(((struct item_v2 *)old_value)->name) == 0);
}

static int make(void *new_value, void *context)
{
    struct item *fresh = new_value;
    CHECK(fresh->number == 0 && fresh->name[19] == 0 && context == &mode);
    strcpy(fresh->name, "made");
    return strcmp(mode, "unmade") == 0;
}

static void told(const struct pmo_reset *reset, void *context)
{
    CHECK(context == &mode);
    printf("reset %s from %s to %s: %d blocks, %d bytes\n", reset->root, reset->old_type, reset->new_type,
           (int)reset->blocks, (int)reset->bytes);
}

static void write_v1(void)
{
    struct item_v1 *item = pmo_calloc(object, 2, sizeof *item);
    CHECK(item != NULL);
    item->number = -5;
    item->name = pmo_malloc(object, 6);
    strcpy(item->name, "first");
    CHECK(pmo_root_create(object, "item", item, sizeof *item, PMO_TYPEOF(item_v1)) == 0);
    if (strcmp(mode, "neighbours") == 0)
        CHECK(pmo_root_create(object, "neighbour", item + 1, sizeof *item, PMO_TYPEOF(item_v1)) == 0);
    CHECK(pmo_psync(object) == 0);
}

static void write_other(void)
{
    struct other *other = pmo_malloc(object, sizeof *other);
    CHECK(other != NULL);
    other->half = 0.5;
    CHECK(pmo_root_create(object, "item", other, sizeof *other, PMO_TYPEOF(other)) == 0);
    CHECK(pmo_psync(object) == 0);
}

static unsigned blocks(void)
{
    struct pmo_heap_stats stats;
    CHECK(pmo_heap_stats(object, &stats) == 0);
    return (unsigned)stats.blocks;
}

static void open_v3(void)
{
    int three = 3;
    struct pmo_converter converters[] = {
        /* Their order does not matter. */
        {PMO_TYPEOF(item_v2), PMO_TYPEOF(item), to_v3, drop_v2, NULL},
        {PMO_TYPEOF(item_v1), PMO_TYPEOF(item_v2), to_v2, drop_v1, &three},
    };
    struct pmo_root_options options = {.converters = converters, .count = 2, .make = make, .context = &mode};
    unsigned before = blocks();
    if (strcmp(mode, "gap") == 0)
        options.count = 1;
    if (strcmp(mode, "short") == 0)
        ++options.converters, options.count = 1;
    if (strcmp(mode, "circle") == 0)
        converters[0].to = PMO_TYPEOF(item_v1);
    if (strcmp(mode, "reset") == 0)
        options.count = 0, options.told = told;
    struct item *item = pmo_root_from(object, "item", PMO_TYPEOF(item), &options);
    if (item == NULL && strcmp(mode, "free twice") == 0) {
        CHECK(pmo_errno() == PMO_ERR_DOUBLE_FREE && dropped == 2);
    } else if (item == NULL) {
        printf("%d after %d: %s\n", pmo_errno(), converted, pmo_error_message());
        CHECK(blocks() == before && dropped == 0);
        const struct item_v1 *old = pmo_root(object, "item", PMO_TYPEOF(item_v1));
        CHECK(strcmp(mode, "unmade") == 0 || strcmp(mode, "strange") == 0 || (old != NULL && old->number == -5 && strcmp(old->name, "first") == 0));
    } else {
        printf("%d %s %d, %d converted, %d dropped, %u blocks\n", (int)item->number, item->name, item->count, converted,
               dropped, blocks());
        CHECK(pmo_root(object, "item", PMO_TYPEOF(item)) == item);
    }
    if (strcmp(mode, "unsynced") != 0)
        CHECK(pmo_psync(object) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    mode = argv[3];
    pmo_pool *pool = pmo_open_or_format(argv[1], 16 << 20, 0);
    struct pmo_stat stat;
    CHECK(pool != NULL);
    if (pmo_stat(pool, "object", &stat) != 0)
        CHECK(pmo_create(pool, "object", 1 << 20) == 0);
    object = pmo_attach(pool, "object", PMO_WRITE, NULL, 0);
    CHECK(object != NULL && pmo_heap_open_or_format(object, 0) == 0);
    if (strcmp(argv[2], "1") == 0 && strcmp(mode, "look") == 0) {
        const struct item_v1 *item = pmo_root(object, "item", PMO_TYPEOF(item_v1));
        CHECK(item != NULL);
        printf("%d %s, %u blocks\n", (int)item->number, item->name, blocks());
    } else if (strcmp(mode, "other") == 0) {
        write_other();
    } else if (strcmp(argv[2], "1") == 0) {
        write_v1();
    } else {
        open_v3();
    }
    return 0; /* Without a detach: what was not psynced is gone. */
}
