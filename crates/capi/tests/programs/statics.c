/* Prints persistent variables: statics.c those of PMO_POOL, statics.c POOL those of POOL. */
#include "check.h"
#include <pmo/static.h>
#include <pthread.h>

enum { THREADS = 4, EACH = 50 };

PMO_STATIC(uint64_t, hits, 1000)
PMO_STATIC(int32_t[3], scores, {7, 8, 9})

/* The same name, and another type. */
struct changed {
    double value;
    uint64_t made;
};
PMO_TYPE_WAS(changed, "static hits", PMO_FIELD(double, value), PMO_FIELD(uint64_t, made))

static void *statics;

static int hit(int aborts)
{
    int result;
    PMO_TX (tx, result, statics) {
        uint64_t *at = hits(tx, statics);
        PMO_TX_STORE(tx, at, PMO_TX_LOAD(tx, at) + 1);
        if (aborts)
            PMO_TX_ABORT(tx);
    }
    return result;
}

static void *work(void *context)
{
    for (int i = 0; i < EACH; i++)
        CHECK(hit(i % 10 == 9) == (i % 10 == 9 ? PMO_TX_ABORTED : PMO_TX_COMMITTED));
    return context;
}

int main(int argc, char **argv)
{
    pmo_pool *pool = argc > 1 ? pmo_open_or_format(argv[1], 16 << 20, 0) : NULL;
    CHECK(argc < 2 || pool);
    CHECK(pmo_wait(pool, 60000) == 0);
    statics = pmo_attach_statics(pool);
    CHECK(statics);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    int result;
    volatile uint64_t seen = 0;
    volatile int32_t middle = 0;
    PMO_TX (tx, result, statics) {
        int32_t(*at)[3] = scores(tx, statics);
        middle = PMO_TX_LOAD(tx, &(*at)[1]);
        PMO_TX_STORE(tx, &(*at)[1], middle + 1);
        seen = PMO_TX_LOAD(tx, hits(tx, statics));
    }
    CHECK(result == PMO_TX_COMMITTED);
    PMO_TX (tx, result, statics)
        pmo_block_root(tx, statics, "hits", PMO_TYPEOF(changed));
    FAILS(result == PMO_TX_FAILED, PMO_ERR_ROOT_TYPE, "hits");
    CHECK(strstr(pmo_error_message(), "value"));
    CHECK(pmo_detach(statics) == 0);
    printf("%llu %d\n", (unsigned long long)seen, (int)middle);
    return 0;
}
