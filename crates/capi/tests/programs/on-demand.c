/* Objects on demand in C: on-demand.c POOL; on-demand.c POOL die, which is killed at random;
 * on-demand.c POOL look; on-demand.c POOL cell NUMBER. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <pmo/transaction.h>
#include <pthread.h>

enum { CELLS = 64, THREADS = 4, ROUNDS = 200 };

struct cells {
    uint64_t cells[CELLS];
};

static struct cells *a, *b;

static void *attached(pmo_pool *pool, const char *name, int durability, uint64_t size)
{
    struct pmo_stat stat;
    if (pmo_stat(pool, name, &stat) != 0) {
        struct pmo_create_options options = {.size = size, .durability = (uint32_t)durability};
        CHECK(pmo_create_with(pool, name, &options) == 0);
        CHECK(pmo_stat(pool, name, &stat) == 0);
    }
    CHECK(stat.durability == (uint32_t)durability);
    void *object = durability == PMO_DURABILITY_ON_DEMAND ? pmo_attach_transactional(pool, name, NULL, 0)
                                                          : pmo_attach_with_on_demand(pool, name, NULL, 0);
    CHECK(object == (void *)stat.address);
    return object;
}

static const char *self, *path;

/* The durable value of a cell, read in another process, as this one has the object attached. */
static uint64_t durable(pmo_pool *pool, const char *name, int cell)
{
    char command[2048];
    unsigned long value;
    CHECK(pmo_snapshot(pool, name, "look", NULL, 0) == 0);
    snprintf(command, sizeof command, "'%s' '%s' cell %d", self, path, cell);
    FILE *other = popen(command, "r");
    CHECK(other && fscanf(other, "%lu", &value) == 1 && pclose(other) == 0);
    CHECK(pmo_destroy(pool, "look", NULL, 0) == 0);
    return value;
}

static void set_both(int cell, uint64_t value)
{
    int result;
    PMO_TX (tx, result, a, b) {
        PMO_TX_STORE(tx, &a->cells[cell], value);
        PMO_TX_STORE(tx, &b->cells[cell], value);
    }
    CHECK(result == PMO_TX_COMMITTED);
}

static void set(struct cells *object, int cell, uint64_t value)
{
    int result;
    PMO_TX (tx, result, object)
        PMO_TX_STORE(tx, &object->cells[cell], value);
    CHECK(result == PMO_TX_COMMITTED);
}

static void are_pending(uint64_t transactions, uint64_t bytes)
{
    struct pmo_pending pending;
    CHECK(pmo_tx_pending(&a->cells[9], &pending) == 0);
    if (pending.transactions != transactions || pending.bytes != bytes) {
        fprintf(stderr, "%lu transactions, %lu bytes\n", (unsigned long)pending.transactions, (unsigned long)pending.bytes);
        exit(1);
    }
}

static void durable_when_asked(pmo_pool *pool)
{
    set(a, 0, 7);
    set_both(1, 8);
    CHECK(durable(pool, "a", 0) == 0 && durable(pool, "b", 1) == 0);
    are_pending(2, 128);
    CHECK(pmo_tx_sync(&b->cells[5]) == 0);
    are_pending(0, 0);
    CHECK(durable(pool, "a", 0) == 7 && durable(pool, "a", 1) == 8 && durable(pool, "b", 1) == 8);
    set(b, 2, 3);
    CHECK(durable(pool, "b", 2) == 0 && pmo_psync(a) == 0 && durable(pool, "b", 2) == 3);
}

static pmo_pool *the_pool;

/* In an action on commit, or at a thread's end: pmo_tx_sync makes cell 6 of a durable. */
static void durable_here(void *value)
{
    CHECK(pmo_tx_sync(a) == 0);
    are_pending(0, 0);
    CHECK(durable(the_pool, "a", 6) == (uintptr_t)value);
}

static void durable_in_an_action(void)
{
    int result;
    PMO_TX (tx, result, a) {
        PMO_TX_STORE(tx, &a->cells[6], 1);
        CHECK(pmo_tx_on_commit(tx->running, durable_here, (void *)1) == 0);
    }
    CHECK(result == PMO_TX_COMMITTED);
    are_pending(0, 0);
}

/* The thread's state is gone: a transaction cannot begin. */
static void at_the_end(void *value)
{
    void *const one[] = {a};
    durable_here(value);
    CHECK(!pmo_tx_begin(one, 1));
    CHECK(pmo_tx_sync(a) == 0);
}

static pthread_key_t key;

static void *ends(void *value)
{
    CHECK(pthread_setspecific(key, value) == 0);
    set(a, 6, (uintptr_t)value);
    return NULL;
}

static void durable_at_the_end_of_a_thread(void)
{
    pthread_t thread;
    CHECK(pthread_key_create(&key, at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, ends, (void *)2) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_key_delete(key) == 0);
}

/* It makes all earlier commits durable. */
static void with_a_transactional_object(pmo_pool *pool)
{
    struct cells *strict = attached(pool, "strict", PMO_DURABILITY_TRANSACTIONAL, sizeof *strict);
    int result;
    set(a, 3, 1);
    are_pending(1, 64);
    PMO_TX (tx, result, a, strict) {
        PMO_TX_STORE(tx, &a->cells[4], 2);
        PMO_TX_STORE(tx, &strict->cells[0], 2);
    }
    CHECK(result == PMO_TX_COMMITTED);
    are_pending(0, 0);
    CHECK(durable(pool, "a", 3) == 1 && durable(pool, "a", 4) == 2 && durable(pool, "strict", 0) == 2);
    CHECK(pmo_detach(strict) == 0);
    /* Attached without on demand, it cannot join an object on demand. */
    strict = pmo_attach_transactional(pool, "strict", NULL, 0);
    void *const both[] = {a, strict};
    FAILS(!pmo_tx_begin(both, 2), PMO_ERR_CLASS_MISMATCH, "pmo_attach_with_on_demand");
    CHECK(pmo_tx_sync(strict) == 0 && pmo_detach(strict) == 0);
}

/* More than there is room for at first: it runs again. */
static void large(pmo_pool *pool)
{
    enum { BYTES = 6 << 20 };
    unsigned char *object = attached(pool, "large", PMO_DURABILITY_ON_DEMAND, BYTES), *bytes = malloc(BYTES);
    int result;
    volatile int runs = 0;
    memset(bytes, 0xA5, BYTES);
    PMO_TX (tx, result, object) {
        runs = runs + 1;
        pmo_block_write(tx, object, bytes, BYTES);
    }
    CHECK(result == PMO_TX_COMMITTED && runs >= 2);
    memset(bytes, 0, BYTES);
    PMO_TX (tx, result, object)
        pmo_block_read(tx, object, bytes, BYTES);
    CHECK(result == PMO_TX_COMMITTED && bytes[0] == 0xA5 && bytes[BYTES - 1] == 0xA5);
    free(bytes);
    CHECK(pmo_detach(object) == 0);
}

static void *counts(void *context)
{
    int mine = (int)(uintptr_t)context;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        int result;
        PMO_TX (tx, result, a, b) {
            PMO_TX_STORE(tx, &a->cells[20], PMO_TX_LOAD(tx, &a->cells[20]) + 1);
            PMO_TX_STORE(tx, &b->cells[mine], round);
        }
        CHECK(result == PMO_TX_COMMITTED);
        if (round % 50 == 0)
            CHECK(pmo_tx_sync(a) == 0);
    }
    return NULL;
}

static void bad_input(pmo_pool *pool)
{
    int64_t here = 0;
    struct pmo_pending pending;
    FAILS(pmo_tx_sync(&here) == -1, PMO_ERR_NOT_ATTACHED, "ask for the transactions on");
    FAILS(pmo_tx_pending(NULL, &pending) == -1, PMO_ERR_NOT_ATTACHED, "ask for the transactions on");
    FAILS(pmo_tx_pending(a, NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(pmo_set_epochs(NULL, 1, 1) == -1, PMO_ERR_ARGUMENT, "pool");
    FAILS(pmo_set_guard(pool, NULL) == -1, PMO_ERR_ARGUMENT, "socket");
    FAILS(!pmo_attach_with_on_demand(pool, "absent", NULL, 0), PMO_ERR_NOT_FOUND, "absent");
    FAILS(!pmo_attach_transactional(pool, "a", NULL, 0), PMO_ERR_HELD, "a");
    void *const one[] = {a};
    pmo_tx *tx = pmo_tx_begin(one, 1);
    CHECK(tx);
    FAILS(pmo_tx_sync(a) == -1, PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(pmo_detach(a) == -1, PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(pmo_tx_alone(tx) == -1, PMO_ERR_CLASS_MISMATCH, "may be run again");
    FAILS(!pmo_tx_alloc(tx, a, 64), PMO_ERR_NOT_A_HEAP, "an allocation makes none");
    CHECK(pmo_tx_pending(a, &pending) == 0 && pmo_tx_abort(tx) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    if (argc > 3 && !strcmp(argv[2], "cell")) {
        const struct cells *look = pmo_attach(pool, "look", PMO_READ, NULL, 0);
        CHECK(look);
        printf("%lu\n", (unsigned long)look->cells[atoi(argv[3])]);
        return 0;
    }
    self = argv[0], path = argv[1];
    CHECK(pool && pmo_set_epochs(pool, 0, 64 << 20) == 0);
    a = attached(pool, "a", PMO_DURABILITY_ON_DEMAND, sizeof *a);
    b = attached(pool, "b", PMO_DURABILITY_ON_DEMAND, sizeof *b);
    if (argc > 2 && !strcmp(argv[2], "die")) {
        int result;
        for (;;) {
            volatile uint64_t next = 0;
            PMO_TX (tx, result, a, b) {
                next = PMO_TX_LOAD(tx, &a->cells[40]) + 1;
                PMO_TX_STORE(tx, &a->cells[40], next);
                PMO_TX_STORE(tx, &b->cells[40], next);
            }
            CHECK(result == PMO_TX_COMMITTED);
            printf("%lu\n", (unsigned long)next);
            fflush(stdout);
        }
    }
    if (argc > 2 && !strcmp(argv[2], "look")) {
        int result;
        volatile uint64_t both[2] = {0, 0};
        PMO_TX (tx, result, a, b) {
            both[0] = PMO_TX_LOAD(tx, &a->cells[40]);
            both[1] = PMO_TX_LOAD(tx, &b->cells[40]);
        }
        CHECK(result == PMO_TX_COMMITTED && both[0] == both[1]);
        printf("%lu\n", (unsigned long)both[0]);
        return 0;
    }
    large(pool);
    durable_when_asked(pool);
    the_pool = pool;
    durable_in_an_action();
    durable_at_the_end_of_a_thread();
    with_a_transactional_object(pool);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, counts, (void *)(30 + i)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(durable(pool, "a", 20) == THREADS * ROUNDS);
    bad_input(pool);
    /* With room for one line, the second commit makes the first durable. */
    CHECK(pmo_set_epochs(pool, 0, 64) == 0);
    set(a, 0, 100);
    set(b, 63, 101);
    CHECK(durable(pool, "a", 0) == 100 && durable(pool, "b", 63) == 0);
    CHECK(pmo_detach(a) == 0 && pmo_detach(b) == 0);
    CHECK(durable(pool, "b", 63) == 101);
    puts("done");
    return 0;
}
