/* Heaps that grow beside another object, and copies of pools: growth.c POOL. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

struct node {
    struct node *next;
    long number;
    char text[1000];
};

PMO_TYPE(node, PMO_POINTS_TO(struct node *, next, node), PMO_FIELD(long, number), PMO_FIELD(char[1000], text))

static struct node *list_new(void *heap, struct node *next, long number)
{
    struct node *node = pmo_malloc(heap, sizeof *node);
    if (!node)
        return NULL;
    node->next = next;
    node->number = number;
    snprintf(node->text, sizeof node->text, "node %ld", number);
    return node;
}

static long length(const struct node *first)
{
    long count = 0;
    for (const struct node *node = first; node; node = node->next, count++) {
        char text[40];
        snprintf(text, sizeof text, "node %ld", node->number);
        CHECK(strcmp(node->text, text) == 0);
        CHECK(!node->next || node->next->number == node->number - 1);
    }
    return count;
}

/* The heap, a wall behind it, and one node as a root. */
static char *walled(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "heap", 64 << 10) == 0 && pmo_create(pool, "wall", 4096) == 0);
    char *wall = pmo_attach(pool, "wall", PMO_WRITE, NULL, 0);
    CHECK(wall);
    memset(wall, 'w', 4096);
    CHECK(pmo_psync(wall) == 0);
    char *heap = pmo_attach(pool, "heap", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_format(heap, PMO_HEAP_GROW) == 0);
    struct node *last = list_new(heap, NULL, 0);
    CHECK(last && pmo_root_create(heap, "last", last, sizeof *last, PMO_TYPEOF(node)) == 0 && pmo_psync(heap) == 0);
    CHECK(pmo_detach(wall) == 0);
    return heap;
}

static void wall_stands(pmo_pool *pool)
{
    const char *wall = pmo_attach(pool, "wall", PMO_READ, NULL, 0);
    CHECK(wall);
    for (int i = 0; i < 4096; i++)
        CHECK(wall[i] == 'w');
    CHECK(pmo_detach((void *)wall) == 0);
}

static void extend(void *heap, long nodes)
{
    struct node *last = pmo_root(heap, "last", PMO_TYPEOF(node));
    CHECK(last);
    long count = length(last);
    for (long added = 0; added < nodes; added++) {
        struct node *copy = pmo_malloc(heap, sizeof *copy);
        CHECK(copy);
        *copy = *last;
        last->next = copy;
        last->number = count + added;
        snprintf(last->text, sizeof last->text, "node %ld", count + added);
    }
}

static long found(pmo_pool *pool, char *address)
{
    char *heap = pmo_attach(pool, "heap", PMO_WRITE, NULL, 0);
    CHECK(heap == address && pmo_heap_open(heap, PMO_HEAP_GROW) == 0);
    long count = length(pmo_root(heap, "last", PMO_TYPEOF(node)));
    CHECK(pmo_detach(heap) == 0);
    return count;
}

static void heap_moves(const char *path)
{
    pmo_pool *pool = pmo_format(path, 32 << 20, 0);
    CHECK(pool);
    char *heap = walled(pool);
    struct pmo_stat stat;
    /* Unsynced stores move with it. */
    extend(heap, 2000);
    CHECK(pmo_stat(pool, "heap", &stat) == 0 && stat.size > 2000 * 1000);
    CHECK(length(pmo_root(heap, "last", PMO_TYPEOF(node))) == 2001);
    wall_stands(pool);
    CHECK(pmo_psync(heap) == 0);
    extend(heap, 2000);
    CHECK(pmo_detach(heap) == 0 && found(pool, heap) == 2001);
    wall_stands(pool);
    CHECK(pmo_close(pool) == 0);
    /* A process that dies after a growth keeps its psyncs. */
    pid_t child = fork();
    if (child == 0) {
        pool = pmo_open(path, 0);
        CHECK(pool);
        heap = pmo_attach(pool, "heap", PMO_WRITE, NULL, 0);
        CHECK(heap && pmo_heap_open(heap, PMO_HEAP_GROW) == 0);
        extend(heap, 2000);
        CHECK(pmo_psync(heap) == 0);
        extend(heap, 4000);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    pool = pmo_open(path, 0);
    CHECK(pool && found(pool, heap) == 4001);
    wall_stands(pool);

    /* The error says which limit was met. */
    CHECK(pmo_attach(pool, "heap", PMO_WRITE, NULL, 0) == heap && pmo_heap_open(heap, PMO_HEAP_GROW) == 0);
    while (pmo_malloc(heap, 40000))
        ;
    FAILS(!pmo_malloc(heap, 40000), PMO_ERR_HEAP_FULL, "the pool has no free piece that is large enough");
    CHECK(pmo_stat(pool, "heap", &stat) == 0 && stat.size > 12 << 20);
    CHECK(pmo_detach(heap) == 0 && found(pool, heap) == 4001);
    struct pmo_create_options options = {.size = 64 << 10, .reach = 1 << 20};
    CHECK(pmo_destroy(pool, "heap", NULL, 0) == 0 && pmo_create_with(pool, "short", &options) == 0);
    heap = pmo_attach(pool, "short", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_format(heap, PMO_HEAP_GROW) == 0);
    FAILS(!pmo_malloc(heap, 2 << 20), PMO_ERR_HEAP_FULL, "its address range ends there");
    CHECK(pmo_detach(heap) == 0 && pmo_close(pool) == 0);
}

static void store(pmo_pool *pool, long value)
{
    long *object = pmo_attach(pool, "value", PMO_WRITE, NULL, 0);
    CHECK(object);
    *object = value;
    CHECK(pmo_psync(object) == 0 && pmo_detach(object) == 0);
}

static long load(pmo_pool *pool)
{
    long *object = pmo_attach(pool, "value", PMO_READ, NULL, 0);
    CHECK(object);
    long value = *object;
    CHECK(pmo_detach(object) == 0);
    return value;
}

/* `cp original copy`, of an idle pool. */
static void copy_file(const char *original, const char *copy)
{
    FILE *from = fopen(original, "rb"), *to = fopen(copy, "wb");
    char bytes[1 << 16];
    CHECK(from && to);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        CHECK(fwrite(bytes, 1, n, to) == n);
    CHECK(fclose(from) == 0 && fclose(to) == 0);
}

static void copies(const char *path)
{
    char original[4096], copy[4096];
    snprintf(original, sizeof original, "%s.original", path);
    snprintf(copy, sizeof copy, "%s.copy", path);
    pmo_pool *pool = pmo_format(original, 16 << 20, 0);
    CHECK(pool && pmo_create(pool, "value", 4096) == 0);
    store(pool, 1);
    copy_file(original, copy);
    FAILS(!pmo_open(copy, 0), PMO_ERR_UNSUITABLE, "one of them at a time");
    CHECK(strstr(pmo_error_message(), original) && strstr(pmo_error_message(), "pmo clone"));
    FAILS(!pmo_open_or_format(copy, 16 << 20, 0), PMO_ERR_UNSUITABLE, "one of them at a time");
    FAILS(!pmo_open(copy, PMO_READ_ONLY), PMO_ERR_UNSUITABLE, "one of them at a time");
    store(pool, 2);
    CHECK(load(pool) == 2 && pmo_close(pool) == 0);
    pool = pmo_open(copy, 0);
    CHECK(pool && load(pool) == 1);
    FAILS(!pmo_open(original, 0), PMO_ERR_UNSUITABLE, "one of them at a time");
    store(pool, 3);
    CHECK(pmo_close(pool) == 0);
    pool = pmo_open(original, 0);
    CHECK(pool && load(pool) == 2 && pmo_close(pool) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    heap_moves(argv[1]);
    copies(argv[1]);
    puts("done");
    return 0;
}
