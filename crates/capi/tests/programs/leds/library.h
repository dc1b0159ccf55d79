/* For programs with libraries' shapes: PROGRAM POOL run, until it is killed; PROGRAM POOL check. */
#ifndef LIBRARY_H
#define LIBRARY_H
#include "check.h"

static char *heap;

/* The root, zeros at first. */
static void *open_root(const char *path, const struct pmo_type *type)
{
    pmo_pool *pool = pmo_open_or_format(path, 16 << 20, 0);
    struct pmo_stat stat;
    CHECK(pool && (pmo_stat(pool, "o", &stat) == 0 || pmo_create(pool, "o", 1 << 20) == 0));
    heap = (char *)pmo_attach(pool, "o", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_open_or_format(heap, 0) == 0);
    void *root = pmo_root(heap, "root", type);
    if (!root) {
        root = pmo_calloc(heap, 1, type->size);
        CHECK(root && pmo_root_create(heap, "root", root, type->size, type) == 0 && pmo_psync(heap) == 0);
    }
    return root;
}

/* Numbers below most, the same in each run. */
static int below(int most)
{
    static unsigned state = 12345;
    state = state * 1103515245U + 12345U;
    return (int)((state >> 16) % (unsigned)most);
}

static void psynced(void)
{
    CHECK(pmo_psync(heap) == 0);
    puts("psynced");
    fflush(stdout);
}

/* The heap is sound, and has so many blocks. */
static void expect_blocks(size_t blocks)
{
    struct pmo_heap_stats stats;
    CHECK(pmo_heap_stats(heap, &stats) == 0 && pmo_heap_check(heap, NULL, NULL) == 0);
    if (stats.blocks != blocks) {
        fprintf(stderr, "%d blocks, and %d are used\n", (int)stats.blocks, (int)blocks);
        exit(1);
    }
}

#endif
