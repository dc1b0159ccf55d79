/* A list through objects of two pools: far POOL OTHER make. Another run: far POOL OTHER walk.
 * Errors: far POOL OTHER wrong. Both objects in one pool: far POOL walk. */
#include "check.h"

#define LENGTH 200

PMO_DECLARE_TYPE(node);
struct node {
    uint64_t number;
    pmo_ptr next;
};
PMO_TYPE(node, PMO_FIELD(uint64_t, number), PMO_POINTS_TO(pmo_ptr, next, node))

static void *created(pmo_pool *pool)
{
    struct pmo_create_options options = {.size = 1 << 20, .flags = PMO_STAT_POSITION_INDEPENDENT};
    void *object;
    CHECK(pmo_create_with(pool, "list", &options) == 0 && (object = pmo_attach(pool, "list", PMO_WRITE, NULL, 0)));
    CHECK(pmo_heap_format(object, 0) == 0);
    return object;
}

static void make(pmo_pool *pool, pmo_pool *other)
{
    void *objects[] = {created(pool), created(other)};
    struct node *next = NULL;
    for (uint64_t number = LENGTH; number-- > 0;) {
        struct node *node = pmo_calloc(objects[number % 2], 1, sizeof *node);
        CHECK(node);
        node->number = number;
        if (next) {
            CHECK((node->next = pmo_store(node, next, PMO_RIGHT_READ)) != 0);
            CHECK(node->next == pmo_store(node, next, PMO_RIGHT_READ));
            CHECK(node->next >> 40 && node->next >> 40 != pmo_store(node, next, PMO_RIGHT_READ | PMO_RIGHT_WRITE) >> 40);
            CHECK(pmo_lea(node, node->next, sizeof *next) == next);
        }
        next = node;
    }
    CHECK(pmo_store(next, next, PMO_RIGHT_READ) == (uint64_t)((char *)next - (char *)objects[0]));
    CHECK(pmo_root_create(objects[0], "first", next, sizeof *next, PMO_TYPEOF(node)) == 0);
    CHECK(pmo_psync(objects[1]) == 0 && pmo_psync(objects[0]) == 0);
    CHECK(pmo_detach(objects[1]) == 0 && pmo_detach(objects[0]) == 0);
}

static void walk(pmo_pool *pool, pmo_pool *other)
{
    void *object = pmo_attach(pool, "list", PMO_READ, NULL, 0);
    CHECK(object && pmo_space_add(pool) == 0);
    const struct node *node = pmo_root(object, "first", PMO_TYPEOF(node));
    if (other) {
        FAILS(pmo_lea(node, node->next, sizeof *node) == NULL, PMO_ERR_DANGLING, "none of the 1 pools");
        CHECK(strstr(pmo_error_message(), "pmo_space_add"));
        CHECK(pmo_space_add(other) == 0);
    }
    for (uint64_t number = 0; number < LENGTH; number++) {
        CHECK(node && node->number == number);
        node = node->next ? pmo_lea(node, node->next, sizeof *node) : NULL;
    }
    CHECK(!node);
    if (!other) {
        CHECK(pmo_detach(object) == 0);
        return;
    }
    node = pmo_root(object, "first", PMO_TYPEOF(node));
    for (int round = 0; round < 3; round++) {
        const struct node *next = pmo_lea(node, node->next, sizeof *next);
        struct pmo_object found;
        CHECK(next && next->number == 1 && pmo_object(next, &found) == 0 && pmo_detach(found.base) == 0);
    }
    CHECK(pmo_space_remove(other) == 0);
    CHECK(pmo_lea(node, node->next, sizeof *node) == NULL && pmo_errno() == PMO_ERR_DANGLING);
    CHECK(pmo_detach(object) == 0);
}

static void wrong(pmo_pool *pool, pmo_pool *other)
{
    void *object = pmo_attach(pool, "list", PMO_WRITE, NULL, 0), *bare;
    CHECK(object && pmo_space_add(pool) == 0 && pmo_space_add(other) == 0);
    CHECK(pmo_create(pool, "bare", 5000) == 0 && (bare = pmo_attach(pool, "bare", PMO_WRITE, NULL, 0)));
    struct node *node = pmo_root(object, "first", PMO_TYPEOF(node));
    int here = 0;
    FAILS(pmo_lea(&here, 8, 1) == NULL, PMO_ERR_NOT_ATTACHED, "no attached object");
    FAILS(pmo_lea(node, 0, 1) == NULL, PMO_ERR_DANGLING, "null");
    FAILS(pmo_lea(node, (uint64_t)77 << 40 | 8, 1) == NULL, PMO_ERR_DANGLING, "no entry 77");
    FAILS(pmo_lea(node, (1 << 20) - 4, 8) == NULL, PMO_ERR_DANGLING, "the object has 0x100000");
    FAILS(pmo_lea(node, (node->next >> 40 << 40) + (1 << 20), 1) == NULL, PMO_ERR_DANGLING, "0x100000");
    FAILS(pmo_lea(node, node->next, SIZE_MAX) == NULL, PMO_ERR_DANGLING, "the object has");
    FAILS(pmo_store(node, &here, 1) == 0, PMO_ERR_NOT_ATTACHED, "no attached object");
    FAILS(pmo_store(&here, node, 1) == 0, PMO_ERR_NOT_ATTACHED, "no attached object");
    FAILS(pmo_store(node, bare, 1) == 0, PMO_ERR_DANGLING, "null");
    FAILS(pmo_store((char *)bare + 8, node, 1) == 0, PMO_ERR_NOT_A_HEAP, "no heap");
    FAILS(pmo_store(node, (char *)bare + 8, 0) == 0, PMO_ERR_ARGUMENT, "the rights are 0");
    FAILS(pmo_store(node, (char *)bare + 8, 8) == 0, PMO_ERR_ARGUMENT, "the rights are 8");
    *(uint64_t *)((char *)bare + 8) = 7;
    uint64_t *seven = pmo_lea(node, pmo_store(node, (char *)bare + 8, PMO_RIGHT_READ), 8);
    CHECK(seven && *seven == 7);
    CHECK(pmo_detach(bare) == 0 && pmo_destroy(pool, "bare", NULL, 0) == 0);
    CHECK(pmo_detach(object) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 || argc == 4);
    const char *step = argv[argc - 1];
    pmo_pool *pools[2] = {NULL, NULL};
    for (int n = 0; n < argc - 2; n++)
        CHECK((pools[n] = !strcmp(step, "make") ? pmo_format(argv[n + 1], 16 << 20, 0) : pmo_open(argv[n + 1], 0)) != NULL);
    (!strcmp(step, "make") ? make : !strcmp(step, "walk") ? walk : wrong)(pools[0], pools[1]);
    for (int n = 0; n < argc - 2; n++)
        CHECK(pmo_close(pools[n]) == 0);
    puts("done");
    return 0;
}
