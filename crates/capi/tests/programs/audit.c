/* Addresses that mean nothing in the next run are found where they lie: audit.c POOL. */
#include "check.h"

struct holder {
    long number;
    void *kept[2];
    void (*call)(void);
};
PMO_TYPE(holder, PMO_FIELD(long, number), PMO_FIELD(void *[2], kept), PMO_FIELD(void (*)(void), call))

static long zeros[100];

static void function(void) {}

struct found {
    int count;
    uint64_t offset, target;
    char place[200], into[200];
};

static void each(const struct pmo_pointer *pointer, void *context)
{
    struct found *found = context;
    found->count++;
    found->offset = pointer->offset;
    found->target = pointer->target;
    snprintf(found->place, sizeof found->place, "%s", pointer->place);
    snprintf(found->into, sizeof found->into, "%s", pointer->into);
}

/* One address is in a word; every kind of psync refuses it, and its error contains these words. */
static void refused(char *object, void **word, void *target, const char *place, const char *into)
{
    struct found found = {0};
    *word = target;
    CHECK(pmo_audit(object, each, &found) == 1 && found.count == 1 && pmo_audit(object, NULL, NULL) == 1);
    if (strcmp(found.place, place) != 0 || strncmp(found.into, into, strlen(into)) != 0) {
        fprintf(stderr, "%s leads into %s, not %s into %s\n", found.place, found.into, place, into);
        exit(1);
    }
    CHECK(found.offset == (uint64_t)((char *)word - object) && found.target == (uintptr_t)target);
    void *all[] = {object};
    FAILS(pmo_psync(object) == -1, PMO_ERR_STRAY_POINTER, place);
    FAILS(pmo_psync_flags(object, PMO_PSYNC_CUT) == -1, PMO_ERR_STRAY_POINTER, into);
    FAILS(pmo_psync_all(all, 1, 0) == -1, PMO_ERR_STRAY_POINTER, "nothing of this psync is durable");
    *word = NULL;
    CHECK(pmo_audit(object, NULL, NULL) == 0 && pmo_psync(object) == 0);
}

static void in_a_heap(pmo_pool *pool, char *object)
{
    struct holder *holder = pmo_calloc(object, 1, sizeof *holder);
    void **block = pmo_calloc(object, 1, 48), *of_malloc = malloc(1000);
    long local = 1;
    CHECK(holder && block && pmo_root_create(object, "holder", holder, sizeof *holder, PMO_TYPEOF(holder)) == 0);
    holder->number = 42;
    holder->kept[0] = holder;
    CHECK(pmo_psync(object) == 0);
    void (*call)(void) = function;
    void *address;
    memcpy(&address, &call, sizeof address);
    refused(object, (void **)&holder->call, address, "holder.call (void_(*)(void))", "the program (/");
    refused(object, &holder->kept[1], &zeros[99], "holder.kept[1] (*mut void)", "the program (/");
    refused(object, &holder->kept[1], &local, "holder.kept[1] (*mut void)", "the stack");
    refused(object, (void **)&holder->number, of_malloc, "holder.number (long)", "memory of the process");
    refused(object, &block[5], stdout, "a block of 48 bytes", "a library (/");
    block[5] = stdout;
    CHECK(pmo_free(block) == 0 && pmo_audit(object, NULL, NULL) == 0 && pmo_psync(object) == 0);
    free(of_malloc);

    holder->number = 43;
    holder->kept[1] = &local;
    CHECK(pmo_psync(object) == -1 && pmo_detach(object) == 0);
    CHECK(pmo_attach(pool, "audited", PMO_READ, NULL, 0) == object && pmo_audit(object, NULL, NULL) == 0);
    CHECK(((struct holder *)pmo_root(object, "holder", NULL))->kept[1] == NULL && pmo_detach(object) == 0);
}

static void into_another_object(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "other", 4096) == 0 && pmo_create(pool, "plain", 8192) == 0);
    char *other = pmo_attach(pool, "other", PMO_WRITE, NULL, 0);
    void **plain = pmo_attach(pool, "plain", PMO_WRITE | PMO_AUDIT, NULL, 0);
    CHECK(other && plain);
    plain[1000] = &other[17];
    CHECK(pmo_audit(plain, NULL, NULL) == 1 && pmo_psync(plain) == 0 && pmo_detach(plain) == 0);
    CHECK(pmo_attach(pool, "plain", PMO_WRITE | PMO_AUDIT_OBJECTS, NULL, 0) == (void *)plain);
    plain[1000] = NULL;
    CHECK(pmo_psync(plain) == 0);
    refused((char *)plain, &plain[1000], &other[17], "the object of 8192 bytes", "object \"other\"");
    CHECK(pmo_detach(plain) == 0);
    CHECK(pmo_attach(pool, "plain", PMO_WRITE, NULL, 0) == (void *)plain);
    plain[0] = &plain;
    CHECK(pmo_psync(plain) == 0 && pmo_audit(plain, NULL, NULL) == 1 && pmo_detach(plain) == 0 && pmo_detach(other) == 0);
}

int main(int argc, char **argv)
{
    pmo_pool *pool = argc > 1 ? pmo_open_or_format(argv[1], 64 << 20, 0) : NULL;
    CHECK(pool && pmo_create(pool, "audited", 1 << 20) == 0);
    FAILS(!pmo_attach(pool, "audited", PMO_READ | PMO_AUDIT, NULL, 0), PMO_ERR_ARGUMENT, "attach with PMO_WRITE");
    FAILS(!pmo_attach(pool, "audited", PMO_WRITE | 2048, NULL, 0), PMO_ERR_ARGUMENT, "permission");
    FAILS(pmo_audit(NULL, NULL, NULL) == -1, PMO_ERR_NOT_ATTACHED, "");
    char *object = pmo_attach(pool, "audited", PMO_WRITE | PMO_AUDIT, NULL, 0);
    CHECK(object && pmo_heap_format(object, 0) == 0);
    in_a_heap(pool, object);
    into_another_object(pool);
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
