/* A list whose pointers are described: rebase POOL make. Its copy at other addresses: rebase POOL
 * copy. Both: rebase POOL both. Undescribed bytes, declared free of addresses, and a move to
 * another pool: rebase POOL bytes OTHER. */
#include "check.h"

#define LENGTH 500

PMO_DECLARE_TYPE(node);
struct node {
    long number;
    char name[20];
    struct node *next, *others[2];
};
PMO_TYPE(node, PMO_FIELD(long, number), PMO_FIELD(char[20], name), PMO_POINTS_TO(struct node *, next, node),
         PMO_POINTS_TO(struct node *[2], others, node))

struct list {
    struct node *first;
    /* Points into a node, which is described already. */
    long *favourite;
};
PMO_TYPE(list, PMO_POINTS_TO(struct node *, first, node), PMO_FIELD(long *, favourite))

static void make(pmo_pool *pool)
{
    char *object;
    CHECK(pmo_create(pool, "list", 1 << 20) == 0 && (object = pmo_attach(pool, "list", PMO_WRITE, NULL, 0)));
    CHECK(pmo_heap_format(object, 0) == 0);
    struct list *list = pmo_calloc(object, 1, sizeof *list);
    CHECK(list && pmo_root_create(object, "list", list, sizeof *list, PMO_TYPEOF(list)) == 0);
    struct node **end = &list->first, *before = NULL;
    for (long number = 0; number < LENGTH; number++) {
        struct node *node = *end = pmo_calloc(object, 1, sizeof *node);
        CHECK(node);
        node->number = number;
        snprintf(node->name, sizeof node->name, "node %ld", number);
        node->others[1] = before;
        end = &node->next;
        before = node;
    }
    list->favourite = &list->first->next->number;
    CHECK(pmo_psync(object) == 0 && pmo_detach(object) == 0);
}

static void holds(const char *object, size_t size)
{
    const struct list *list = pmo_root((char *)object, "list", PMO_TYPEOF(list));
    CHECK(list && *list->favourite == 1 && list->favourite == &list->first->next->number);
    const struct node *node = list->first, *before = NULL;
    for (long number = 0; number < LENGTH; number++, node = node->next) {
        char name[20];
        snprintf(name, sizeof name, "node %ld", number);
        CHECK((const char *)node >= object && (const char *)(node + 1) <= object + size);
        CHECK(node->number == number && !strcmp(node->name, name) && node->others[1] == before);
        before = node;
    }
    CHECK(!node);
}

static void told(uint64_t done, uint64_t all, void *context)
{
    CHECK(done <= all);
    *(uint64_t *)context = all;
}

static void copy(pmo_pool *pool)
{
    uint64_t all = 0;
    CHECK(pmo_copy_to(pool, "list", NULL, 0, pool, "copy", PMO_REBASE | 2, NULL, NULL) == -1 &&
          pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_copy_to(pool, "list", NULL, 0, pool, "copy", PMO_REBASE, told, &all) == 0 && all > 0);
    CHECK(pmo_copy_to(pool, "list", NULL, 0, pool, "copy", PMO_REBASE, NULL, NULL) == -1 && pmo_errno() == PMO_ERR_EXISTS);
}

static uint32_t flags(pmo_pool *pool, const char *name)
{
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, name, &stat) == 0);
    return stat.flags;
}

static void raw(pmo_pool *pool, pmo_pool *other)
{
    struct pmo_create_options options = {.size = 8192, .flags = PMO_STAT_POSITION_INDEPENDENT};
    CHECK(pmo_create_with(pool, "told", &options) == 0 && pmo_create(pool, "untold", 8192) == 0);
    CHECK(flags(pool, "told") == PMO_STAT_POSITION_INDEPENDENT && flags(pool, "untold") == 0);
    const char *names[] = {"told", "untold"};
    for (int n = 0; n < 2; n++) {
        char *object = pmo_attach(pool, names[n], PMO_WRITE, NULL, 0);
        CHECK(object && strcpy(object, "bytes") && pmo_psync(object) == 0);
        CHECK(pmo_set_position_independent(pool, names[n], NULL, 0, 1) == -1 && pmo_errno() == PMO_ERR_HELD);
        CHECK(pmo_detach(object) == 0);
    }
    CHECK(pmo_copy_to(pool, "told", NULL, 0, pool, "beside", PMO_REBASE, NULL, NULL) == 0);
    CHECK(pmo_move_to(pool, "untold", NULL, 0, other, PMO_REBASE, NULL, NULL) == -1 && pmo_errno() == PMO_ERR_UNSUITABLE);
    CHECK(strstr(pmo_error_message(), "position-independent"));
    CHECK(pmo_set_position_independent(pool, "untold", NULL, 0, 2) == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_set_position_independent(pool, "untold", NULL, 0, 1) == 0);
    CHECK(pmo_move_to(pool, "untold", NULL, 0, other, PMO_REBASE, NULL, NULL) == 0);
    CHECK(pmo_move_to(pool, "untold", NULL, 0, other, 0, NULL, NULL) == -1 && pmo_errno() == PMO_ERR_NOT_FOUND);
    CHECK(flags(other, "untold") == PMO_STAT_POSITION_INDEPENDENT);
    char *one = pmo_attach(pool, "told", PMO_WRITE, NULL, 0), *two = pmo_attach(pool, "beside", PMO_READ, NULL, 0);
    char *three = pmo_attach(other, "untold", PMO_READ, NULL, 0);
    CHECK(one && two && three && one != two && !strcmp(two, "bytes") && !strcmp(three, "bytes"));
    CHECK(pmo_detach(one) == 0 && pmo_detach(two) == 0 && pmo_detach(three) == 0);
    CHECK(pmo_set_position_independent(pool, "told", NULL, 0, 0) == 0 && flags(pool, "told") == 0);
    CHECK(pmo_copy_to(pool, "told", NULL, 0, other, "as it is", 0, NULL, NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc > 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 32 << 20, 0);
    CHECK(pool);
    if (!strcmp(argv[2], "make")) {
        make(pool);
    } else if (!strcmp(argv[2], "copy")) {
        copy(pool);
    } else if (!strcmp(argv[2], "bytes")) {
        pmo_pool *other = pmo_open_or_format(argv[3], 16 << 20, 0);
        CHECK(other);
        raw(pool, other);
        CHECK(pmo_close(other) == 0);
    } else {
        char *one = pmo_attach(pool, "list", PMO_WRITE, NULL, 0), *two = pmo_attach(pool, "copy", PMO_WRITE, NULL, 0);
        CHECK(one && two && one != two && pmo_heap_open(one, 0) == 0 && pmo_heap_open(two, 0) == 0);
        holds(one, 1 << 20);
        holds(two, 1 << 20);
        struct list *list = pmo_root(two, "list", PMO_TYPEOF(list));
        list->first->number = 77;
        CHECK(pmo_free(list->first->next->next) == 0 && pmo_psync(two) == 0);
        holds(one, 1 << 20);
        CHECK(pmo_detach(one) == 0 && pmo_detach(two) == 0);
    }
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
