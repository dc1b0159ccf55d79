/* Blocks and roots in transactions of C: transactional-heap.c POOL; transactional-heap.c POOL on-demand, of objects on demand. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <pmo/transaction.h>
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60, BATCH = 50 };

struct node {
    struct node *next;
    uint64_t value;
};

struct stacks {
    struct node *first[THREADS];
    uint64_t pushed;
};
PMO_TYPE(stacks, PMO_FIELD(struct node *[THREADS], first), PMO_FIELD(uint64_t, pushed))

struct other {
    double pushed;
};
PMO_TYPE(other, PMO_FIELD(double, pushed))

static void *heap;
static uint32_t durability = PMO_DURABILITY_TRANSACTIONAL;

static void *attached(pmo_pool *pool, const char *name, uint64_t size, uint64_t reach)
{
    struct pmo_create_options options = {.size = size, .reach = reach, .durability = durability};
    CHECK(pmo_create_with(pool, name, &options) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    void *object = pmo_attach_transactional(pool, name, NULL, 0);
    CHECK(object);
    return object;
}

static void push(struct pmo_block *tx, struct node **first, uint64_t value)
{
    struct node *node = pmo_block_alloc(tx, first, sizeof *node);
    CHECK(node && (uintptr_t)node % 16 == 0);
    PMO_TX_STORE(tx, &node->next, PMO_TX_LOAD(tx, first));
    PMO_TX_STORE(tx, &node->value, value);
    PMO_TX_STORE(tx, first, node);
}

static int pop(struct pmo_block *tx, struct node **first)
{
    struct node *node = PMO_TX_LOAD(tx, first);
    if (node == NULL)
        return 0;
    PMO_TX_STORE(tx, first, PMO_TX_LOAD(tx, &node->next));
    pmo_block_free(tx, node);
    return 1;
}

static struct stacks *root(struct pmo_block *tx)
{
    return pmo_block_root(tx, heap, "stacks", PMO_TYPEOF(stacks));
}

static int one(uintptr_t own, int round)
{
    int result;
    PMO_TX (tx, result, heap) {
        struct stacks *stacks = root(tx);
        for (int i = 0; i < BATCH; i++)
            push(tx, &stacks->first[own], (uint64_t)(round * BATCH + i));
        void *large = pmo_block_alloc(tx, heap, 60000);
        CHECK(large);
        for (int i = 0; i < BATCH / 2; i++)
            pop(tx, &stacks->first[own]);
        if (round % 3 != 0)
            pmo_block_free(tx, large);
        PMO_TX_STORE(tx, &stacks->pushed, PMO_TX_LOAD(tx, &stacks->pushed) + BATCH / 2);
        if (round % 10 == 9)
            PMO_TX_ABORT(tx);
    }
    return result;
}

static void *work(void *context)
{
    for (int round = 0; round < ROUNDS; round++)
        CHECK(one((uintptr_t)context, round) == (round % 10 == 9 ? PMO_TX_ABORTED : PMO_TX_COMMITTED));
    return NULL;
}

static uint64_t blocks(pmo_pool *pool, const char *name)
{
    struct pmo_heap_stats stats;
    void *object = pmo_attach(pool, name, PMO_READ, NULL, 0);
    CHECK(object && pmo_heap_check(object, NULL, NULL) == 0 && pmo_heap_stats(object, &stats) == 0);
    CHECK(pmo_detach(object) == 0);
    return stats.blocks;
}

/* The heap cannot grow: the block goes on. */
static int fill(void *full)
{
    int result;
    volatile int got = 0;
    PMO_TX (tx, result, full) {
        got = 0;
        CHECK(pmo_block_root(tx, full, "stacks", PMO_TYPEOF(stacks)));
        while (pmo_block_alloc(tx, full, 8192) != NULL)
            got = got + 1;
        CHECK(pmo_errno() == PMO_ERR_HEAP_FULL && strstr(pmo_error_message(), "its address range ends there"));
    }
    CHECK(result == PMO_TX_COMMITTED && got > 3);
    return got;
}

static void errors(pmo_pool *pool)
{
    void *data = attached(pool, "data", 65536, 0), *full = attached(pool, "full", 65536, 65536);
    void *const objects[] = {heap, data};
    uint64_t word = 7;
    pmo_tx *tx = pmo_tx_begin(objects, 2);
    CHECK(tx && pmo_tx_write(tx, data, &word, 8) == 0);
    FAILS(!pmo_tx_alloc(tx, data, 16), PMO_ERR_NOT_A_HEAP, "an allocation makes none (make a root first");
    FAILS(pmo_tx_free(tx, data) == -1, PMO_ERR_NOT_A_HEAP, "an allocation makes none");
    FAILS(!pmo_tx_root(tx, data, "stacks", PMO_TYPEOF(stacks)), PMO_ERR_EXISTS, "holds data");
    FAILS(!pmo_tx_alloc(tx, full, 16), PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    FAILS(!pmo_tx_alloc(tx, &word, 16), PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    FAILS(!pmo_tx_alloc(NULL, heap, 16), PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_tx_alloc(tx, heap, (size_t)-1), PMO_ERR_CONFLICT, "met");
    CHECK(pmo_tx_again(tx) == 0);
    FAILS(!pmo_tx_alloc(tx, heap, (size_t)-1), PMO_ERR_HEAP_FULL, "does not grow");
    char *block = pmo_tx_alloc(tx, heap, 100);
    CHECK(block && pmo_tx_free(tx, NULL) == 0);
    FAILS(pmo_tx_free(tx, block + 16) == -1, PMO_ERR_NOT_A_BLOCK, "inside the block");
    FAILS(pmo_tx_free(tx, &word) == -1, PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    CHECK(pmo_tx_free(tx, block) == 0);
    FAILS(pmo_tx_free(tx, block) == -1, PMO_ERR_DOUBLE_FREE, "free already");
    FAILS(!pmo_tx_root(tx, heap, "stacks", PMO_TYPEOF(other)), PMO_ERR_ROOT_TYPE, "stacks");
    void *stacks = pmo_tx_root(tx, heap, "stacks", PMO_TYPEOF(stacks));
    FAILS(pmo_tx_free(tx, stacks) == -1, PMO_ERR_ROOT_EXISTS, "that of root \"stacks\"");
    FAILS(!pmo_tx_root(tx, heap, NULL, PMO_TYPEOF(other)), PMO_ERR_ARGUMENT, "NULL");
    CHECK(pmo_tx_abort(tx) == 0);
    int got = fill(full);
    CHECK(pmo_detach(data) == 0 && pmo_detach(full) == 0);
    CHECK(blocks(pool, "full") == (uint64_t)got + 1);
}

/* A value at the object's beginning prevents a heap. */
static void beginning(pmo_pool *pool)
{
    uint64_t word = 1;
    void *bank = attached(pool, "bank", 65536, 0), *small = attached(pool, "small", 64, 0);
    void *const objects[] = {bank, small};
    pmo_tx *tx = pmo_tx_begin(objects, 2);
    FAILS(!pmo_tx_alloc(tx, bank, 16), PMO_ERR_NOT_A_HEAP, "an allocation makes none");
    CHECK(pmo_tx_read(tx, bank, &word, 8) == 0 && word == 0);
    FAILS(!pmo_tx_alloc(tx, small, 16), PMO_ERR_NOT_A_HEAP, "an allocation makes none");
    FAILS(pmo_tx_begin_with(small, 65) == -1, PMO_ERR_BAD_SIZE, "\"small\"");
    FAILS(pmo_tx_begin_with(&word, 8) == -1, PMO_ERR_NOT_ATTACHED, "");
    CHECK(pmo_tx_begin_with(bank, 64) == 0);
    FAILS(!pmo_tx_alloc(tx, bank, 16), PMO_ERR_NOT_A_HEAP, "was attached as a value of 64 bytes");
    FAILS(!pmo_tx_root(tx, bank, "stacks", PMO_TYPEOF(stacks)), PMO_ERR_NOT_A_HEAP, "as a value of 64 bytes");
    CHECK(pmo_tx_read(tx, bank, &word, 8) == 0 && word == 0 && pmo_tx_commit(tx) == 0);
    CHECK(pmo_detach(bank) == 0 && pmo_detach(small) == 0);
    bank = attached(pool, "bank", 65536, 0);
    void *const again[] = {bank};
    tx = pmo_tx_begin(again, 1);
    CHECK(pmo_tx_root(tx, bank, "stacks", PMO_TYPEOF(stacks)) && pmo_tx_alloc(tx, bank, 16));
    CHECK(pmo_tx_commit(tx) == 0 && pmo_detach(bank) == 0);
    CHECK(blocks(pool, "bank") == 2);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 128 << 20, 0);
    CHECK(pool);
    if (argc > 2)
        durability = PMO_DURABILITY_ON_DEMAND;
    heap = attached(pool, "heap", 65536, 0);
    /* A neighbour, so that the heap moves when it grows. */
    CHECK(pmo_create(pool, "behind", 65536) == 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    errors(pool);
    beginning(pool);
    CHECK(pmo_detach(heap) == 0);
    /* A tenth aborted, half of the rest popped; of 54 large blocks, 18 stay. */
    enum { LEFT = THREADS * 54 * BATCH / 2 };
    CHECK(blocks(pool, "heap") == LEFT + THREADS * 18 + 1);
    heap = attached(pool, "heap", 65536, 0);
    int result;
    volatile uint64_t popped = 0, pushed = 0;
    PMO_TX (tx, result, heap) {
        popped = 0;
        struct stacks *stacks = root(tx);
        for (int i = 0; i < THREADS; i++)
            while (pop(tx, &stacks->first[i]))
                popped = popped + 1;
        pushed = PMO_TX_LOAD(tx, &stacks->pushed);
    }
    CHECK(result == PMO_TX_COMMITTED && popped == LEFT && pushed == LEFT);
    CHECK(pmo_detach(heap) == 0 && blocks(pool, "heap") == THREADS * 18 + 1);
    puts("done");
    return 0;
}
