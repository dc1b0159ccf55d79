/* A list whose pointers are described: rebase POOL make. And a copy of it at other addresses, beside it: rebase POOL both. */
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
    /* Into a node: what is there is described already. */
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

int main(int argc, char **argv)
{
    CHECK(argc > 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 32 << 20, 0);
    CHECK(pool);
    if (!strcmp(argv[2], "make")) {
        make(pool);
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
