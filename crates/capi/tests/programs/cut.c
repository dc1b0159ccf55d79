/* Cuts beside storing, allocating threads: cut.c POOL store, which dies; cut.c POOL look. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Each thread counts up in the first object, then in the second, and keeps as many blocks. */
struct counts {
    _Atomic long value[2];
};

static struct counts *objects[2];
static char *heap;

static void *count(void *context)
{
    long me = (long)context;
    for (long i = 1;; i++) {
        atomic_store(&objects[0]->value[me], i);
        atomic_store(&objects[1]->value[me], i);
        void *block = pmo_malloc(heap, 16 + (size_t)(i % 500));
        CHECK(block && pmo_free(block) == 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    const char *names[3] = {"first", "second", "heap"};
    void *all[3];
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    CHECK(pool);
    int look = strcmp(argv[2], "look") == 0;
    for (int i = 0; i < 3; i++) {
        CHECK(look || pmo_create(pool, names[i], 1 << 20) == 0);
        CHECK((all[i] = pmo_attach(pool, names[i], PMO_WRITE, NULL, 0)) != NULL);
    }
    objects[0] = all[0], objects[1] = all[1], heap = all[2];
    if (look) {
        for (int me = 0; me < 2; me++) {
            long ahead = objects[0]->value[me] - objects[1]->value[me];
            CHECK(objects[1]->value[me] > 0 && (ahead == 0 || ahead == 1));
        }
        CHECK(pmo_heap_check(heap, NULL, NULL) == 0);
        printf("whole at %ld and %ld\n", objects[1]->value[0], objects[1]->value[1]);
        return 0;
    }
    CHECK(pmo_heap_format(heap, 0) == 0);
    pthread_t threads[2];
    for (long me = 0; me < 2; me++)
        CHECK(pthread_create(&threads[me], NULL, count, (void *)me) == 0);
    while (!objects[1]->value[0] || !objects[1]->value[1])
        ;
    for (int i = 0; i < 300; i++)
        CHECK(pmo_psync_all(all, 3, PMO_PSYNC_CUT) == 0);
    raise(SIGKILL);
    return 0;
}
