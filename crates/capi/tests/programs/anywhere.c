/* States of an object at once, beside the object itself: anywhere POOL. Stores that must fault, to
 * a state beside a writer, and alone: anywhere POOL beside, anywhere POOL alone. */
#include "check.h"

enum { SIZE = 1 << 20, ANYWHERE = PMO_SNAPSHOT | PMO_ANYWHERE };

struct node {
    uint64_t number;
    struct node *next;
};
PMO_DECLARE_TYPE(node);
PMO_TYPE(node, PMO_FIELD(uint64_t, number), PMO_POINTS_TO(struct node *, next, node))

static struct node *root(void *object)
{
    return pmo_root(object, "first", PMO_TYPEOF(node));
}

static struct node *created(pmo_pool *pool, const char *name)
{
    CHECK(pmo_create(pool, name, SIZE) == 0);
    char *object = pmo_attach(pool, name, PMO_WRITE, NULL, 0);
    CHECK(object && pmo_heap_format(object, 0) == 0);
    struct node *first = pmo_calloc(object, 1, sizeof *first);
    CHECK(first && pmo_root_create(object, "first", first, sizeof *first, PMO_TYPEOF(node)) == 0);
    first->number = 1, first->next = first;
    CHECK(pmo_psync(object) == 0);
    return first;
}

/* Two states beside the writer of this process; each keeps its bytes. */
static void states(pmo_pool *pool, struct node *first, char *object)
{
    struct pmo_object known;
    char *one = pmo_attach(pool, "a", ANYWHERE, NULL, 0);
    first->number = 2;
    CHECK(one && pmo_psync(object) == 0);
    struct pmo_attach_options with = {.size = sizeof with, .permission = ANYWHERE};
    char *two = pmo_attach_with(pool, "a", &with);
    first->number = 3;
    CHECK(two && one != object && two != object && one != two);
    CHECK(root(one)->number == 1 && root(two)->number == 2 && root(object)->number == 3);
    size_t at = (size_t)((char *)first - object);
    CHECK(root(one) == (void *)(one + at) && root(two) == (void *)(two + at));
    CHECK(memcmp(one, two, at) == 0 && memcmp(one + at + 8, two + at + 8, SIZE - at - 8) == 0);
    CHECK(root(one)->next == first && root(two)->next == first);

    char *states[] = {one, two};
    for (int nth = 0; nth < 2; nth++) {
        CHECK(pmo_object(states[nth] + SIZE - 1, &known) == 0 && known.base == states[nth]);
        CHECK(known.size == SIZE && !known.writable && strcmp(known.name, "a") == 0);
        CHECK(pmo_prefault(states[nth], SIZE) == SIZE);
        CHECK(pmo_psync(states[nth]) == 0 && pmo_revert(states[nth]) == 0 && pmo_mark_dirty(states[nth], 8) == 0);
        FAILS(!pmo_malloc(states[nth], 8), PMO_ERR_READ_ONLY, "\"a\"");
        FAILS(pmo_grow(states[nth], 2 * SIZE) == -1, PMO_ERR_READ_ONLY, "\"a\"");
        int newer = 5;
        FAILS(pmo_refresh(states[nth], &newer) == -1, PMO_ERR_UNSUITABLE, "attach another one");
        CHECK(newer == 5 && root(states[nth])->number == 1u + (unsigned)nth);
    }

    /* The object grows, and its states keep their size. */
    CHECK(pmo_grow(object, 2 * SIZE) == 0 && (object[2 * SIZE - 1] = 9) && pmo_psync(object) == 0);
    char *three = pmo_attach(pool, "a", ANYWHERE, NULL, 0);
    CHECK(three && three[2 * SIZE - 1] == 9 && root(three)->number == 3);
    CHECK(pmo_object(one, &known) == 0 && known.size == SIZE && root(one)->number == 1);

    /* Each ends for itself, and a state outlives the writer. */
    CHECK(pmo_detach(two) == 0 && root(one)->number == 1 && first->number == 3);
    FAILS(pmo_detach(two) == -1, PMO_ERR_NOT_ATTACHED, "");
    CHECK(pmo_detach(object) == 0 && root(one)->number == 1 && root(three)->number == 3);
    CHECK(pmo_detach(one) == 0 && pmo_detach(three) == 0);
}

/* A far pointer leads to the object, attached or not, and to none of its states. */
static void far(pmo_pool *pool, char *object)
{
    struct node *from = created(pool, "from"), *to;
    char *state = pmo_attach(pool, "a", ANYWHERE, NULL, 0);
    CHECK(state && pmo_space_add(pool) == 0);
    pmo_ptr pointer = pmo_store(from, root(state), PMO_RIGHT_READ);
    CHECK(pointer && (to = pmo_lea(from, pointer, sizeof *to)) != NULL);
    struct pmo_object known;
    CHECK(to != root(state) && pmo_object(to, &known) == 0 && known.base == object && to == root(object));
    CHECK(pmo_detach(object) == 0 && root(state)->number == 3);
    CHECK(pmo_lea(from, pointer, sizeof *to) == to && pmo_object(to, &known) == 0 && known.base == object);
    CHECK(pmo_detach(object) == 0 && pmo_space_remove(pool) == 0 && pmo_detach(state) == 0);
}

static void arguments(pmo_pool *pool)
{
    FAILS(!pmo_attach(pool, "a", PMO_READ | PMO_ANYWHERE, NULL, 0), PMO_ERR_ARGUMENT, "PMO_SNAPSHOT");
    FAILS(!pmo_attach(pool, "a", PMO_WRITE | PMO_ANYWHERE, NULL, 0), PMO_ERR_ARGUMENT, "PMO_SNAPSHOT");
    FAILS(!pmo_attach(pool, "a", ANYWHERE | PMO_AUDIT, NULL, 0), PMO_ERR_ARGUMENT, "PMO_WRITE");
    FAILS(!pmo_attach(pool, "a", ANYWHERE | 2048, NULL, 0), PMO_ERR_ARGUMENT, "permission");
    FAILS(!pmo_attach(pool, "none", ANYWHERE, NULL, 0), PMO_ERR_NOT_FOUND, "\"none\"");
    struct pmo_attach_options with = {.size = sizeof with, .permission = ANYWHERE, .wait = 1};
    FAILS(!pmo_attach_with(pool, "a", &with), PMO_ERR_ARGUMENT, "a snapshot");
    struct pmo_create_options locked = {.size = 4096, .read_key = "r", .read_key_len = 1};
    CHECK(pmo_create_with(pool, "locked", &locked) == 0);
    FAILS(!pmo_attach(pool, "locked", ANYWHERE, NULL, 0), PMO_ERR_WRONG_KEY, "\"locked\"");
    void *state = pmo_attach(pool, "locked", ANYWHERE, "r", 1);
    CHECK(state && pmo_detach(state) == 0);
}

static void sealed(pmo_pool *pool)
{
    pmo_seal_key *key = pmo_seal_key_bytes("32 bytes that open this object.", 32);
    struct pmo_create_options options = {.size = 8192};
    CHECK(key && pmo_create_sealed(pool, "sealed", &options, key, "") == 0);
    char *object = pmo_attach_sealed(pool, "sealed", PMO_WRITE, NULL, 0, key);
    CHECK(object && (*object = 1) && pmo_psync(object) == 0);
    char *one = pmo_attach_sealed(pool, "sealed", ANYWHERE, NULL, 0, key);
    CHECK(one && (*object = 2) && pmo_psync(object) == 0);
    struct pmo_attach_options with = {.size = sizeof with, .permission = ANYWHERE, .seal = key};
    char *two = pmo_attach_with(pool, "sealed", &with);
    CHECK(two && *one == 1 && *two == 2 && pmo_detach(one) == 0 && pmo_detach(two) == 0);
    FAILS(!pmo_attach(pool, "sealed", ANYWHERE, NULL, 0), PMO_ERR_SEALED, "\"sealed\"");
    CHECK(pmo_detach(object) == 0 && pmo_seal_key_free(key) == 0);
}

/* Prints, and faults. */
static void store(pmo_pool *pool, const char *which)
{
    struct node *first = created(pool, which);
    struct pmo_object known;
    CHECK(pmo_object(first, &known) == 0 && (strcmp(which, "beside") == 0 || pmo_detach(known.base) == 0));
    volatile char *state = pmo_attach(pool, which, ANYWHERE, NULL, 0);
    CHECK(state && root((void *)(uintptr_t)state)->number == 1);
    puts("loaded");
    fflush(stdout);
    *state = 1;
}

int main(int argc, char **argv)
{
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    CHECK(pool);
    if (argc > 2) {
        store(pool, argv[2]);
        return 0;
    }
    struct node *first = created(pool, "a");
    struct pmo_object known;
    CHECK(pmo_object(first, &known) == 0);
    arguments(pool);
    states(pool, first, known.base);
    CHECK(pmo_attach(pool, "a", PMO_READ, NULL, 0) == known.base);
    far(pool, known.base);
    sealed(pool);
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
