/* Transactions in C that run again after conflicts. C++ has pmo::transaction (pmo.hpp).
 *
 *     struct bank { int64_t accounts[64]; } *bank = pmo_attach_transactional(pool, "bank", NULL, 0);
 *     int result;
 *     PMO_TX (tx, result, bank) {
 *         int64_t left = PMO_TX_LOAD(tx, &bank->accounts[1]) - 30;
 *         if (left < 0)
 *             PMO_TX_ABORT(tx);
 *         PMO_TX_STORE(tx, &bank->accounts[1], left);
 *         PMO_TX_STORE(tx, &bank->accounts[2], PMO_TX_LOAD(tx, &bank->accounts[2]) + 30);
 *     }
 *     if (result == PMO_TX_FAILED)
 *         fprintf(stderr, "%s\n", pmo_error_message());
 *
 * The rules are those of setjmp. The block may run several times: its other effects must be
 * repeatable. A variable of the surrounding function that the block changes and then reads is
 * volatile. Functions that it calls get tx, a struct pmo_block *. Memory that the block acquires
 * leaks when it runs again: pmo_tx_on_abort(tx->running, free, memory) frees it. Leaving the block
 * by return or goto undoes the transaction; break and continue commit it. */
#ifndef PMO_TRANSACTION_H
#define PMO_TRANSACTION_H

#include <pmo.h>
#include <setjmp.h>

#ifndef __cplusplus

/* How a transaction ended. */
enum pmo_tx_result {
    /* It is durable. */
    PMO_TX_COMMITTED = 0,
    /* PMO_TX_ABORT, or the block was left by return or goto: no effect. */
    PMO_TX_ABORTED = 1,
    /* pmo_errno and pmo_error_message say why. */
    PMO_TX_FAILED = -1
};

/* The transaction of a running block. */
struct pmo_block {
    pmo_tx *running;
    void *const *objects;
    size_t count;
    int *result;
    int over;
    jmp_buf start;
};

/** Runs the block that follows as a transaction on the objects, addresses in transactional objects
 * of one pool; result is an int, afterwards an enum pmo_tx_result. */
#define PMO_TX(tx, result, ...)                                                                     \
    PMO_TX_OF (tx, result, ((void *const[]){__VA_ARGS__}),                                          \
               sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))

/** As PMO_TX, on count objects of an array, a void *const *. */
#define PMO_TX_OF(tx, result, objects, count)                                                       \
    for (struct pmo_block tx[1] __attribute__((__cleanup__(pmo_block_leave))) =                     \
             {pmo_block_of((objects), (count), &(result))};                                         \
         !tx->over; pmo_block_commit(tx))                                                           \
        switch (setjmp(tx->start))                                                                  \
        default:                                                                                    \
            if (pmo_block_begin(tx)) {                                                              \
            } else

/** The value at an address in an object of the transaction: a number, a pointer, a struct. */
#define PMO_TX_LOAD(tx, address)                                                                    \
    __extension__({                                                                                 \
        __typeof__(*(address)) pmo_loaded;                                                          \
        pmo_block_read((tx), (address), (void *)&pmo_loaded, sizeof pmo_loaded);                    \
        pmo_loaded;                                                                                 \
    })

/** Stores a value at an address in an object of the transaction, if it commits. */
#define PMO_TX_STORE(tx, address, value)                                                            \
    do {                                                                                            \
        __typeof__(*(address)) pmo_stored = (value);                                                \
        pmo_block_write((tx), (address), &pmo_stored, sizeof pmo_stored);                           \
    } while (0)

/** Ends the transaction without effect, and its block. */
#define PMO_TX_ABORT(tx) pmo_block_abort(tx)

static inline struct pmo_block pmo_block_of(void *const *objects, size_t count, int *result)
{
    struct pmo_block block;
    block.running = NULL;
    block.objects = objects;
    block.count = count;
    block.result = result;
    block.over = 0;
    *result = PMO_TX_ABORTED;
    return block;
}

static inline void pmo_block_end(struct pmo_block *tx, int result)
{
    tx->running = NULL;
    tx->over = 1;
    *tx->result = result;
}

/* Begins a run; nonzero for an error. */
static inline int pmo_block_begin(struct pmo_block *tx)
{
    if (tx->over)
        return 1;
    if (tx->running == NULL ? (tx->running = pmo_tx_begin(tx->objects, tx->count)) != NULL : pmo_tx_again(tx->running) == 0)
        return 0;
    pmo_block_end(tx, PMO_TX_FAILED);
    return 1;
}

static inline void pmo_block_commit(struct pmo_block *tx)
{
    int committed;
    if (tx->over)
        return;
    committed = pmo_tx_commit(tx->running);
    if (committed != 1)
        pmo_block_end(tx, committed);
}

/* After a conflict runs the block again; after an error ends it. */
static inline void pmo_block_step(struct pmo_block *tx, int done)
{
    if (done == 0)
        return;
    if (pmo_errno() != PMO_ERR_CONFLICT) {
        pmo_tx_abort(tx->running);
        pmo_block_end(tx, PMO_TX_FAILED);
    }
    longjmp(tx->start, 1);
}

/* Cleanup when the block is left in any way. */
static inline void pmo_block_leave(void *block)
{
    struct pmo_block *tx = block;
    if (tx->running != NULL)
        pmo_tx_abort(tx->running);
    tx->running = NULL;
}

static inline void pmo_block_abort(struct pmo_block *tx)
{
    pmo_tx_abort(tx->running);
    pmo_block_end(tx, PMO_TX_ABORTED);
    longjmp(tx->start, 1);
}

/** As PMO_TX_LOAD, of size bytes. */
static inline void pmo_block_read(struct pmo_block *tx, const void *from, void *into, size_t size)
{
    pmo_block_step(tx, pmo_tx_read(tx->running, from, into, size));
}

/** As PMO_TX_STORE, of size bytes. */
static inline void pmo_block_write(struct pmo_block *tx, void *to, const void *from, size_t size)
{
    pmo_block_step(tx, pmo_tx_write(tx->running, to, from, size));
}

/* After a conflict, or to grow the heap, runs the block again; NULL if the heap cannot grow; after
 * another error ends the block. */
static inline void *pmo_block_got(struct pmo_block *tx, void *address)
{
    if (address == NULL && pmo_errno() != PMO_ERR_HEAP_FULL)
        pmo_block_step(tx, -1);
    return address;
}

/** Allocates size bytes in the heap of an object of the transaction, if it commits: see
 * pmo_tx_alloc. NULL if the heap is full and cannot grow. */
static inline void *pmo_block_alloc(struct pmo_block *tx, const void *object, size_t size)
{
    return pmo_block_got(tx, pmo_tx_alloc(tx->running, object, size));
}

/** Frees a block, if the transaction commits: see pmo_tx_free. */
static inline void pmo_block_free(struct pmo_block *tx, void *block)
{
    pmo_block_step(tx, pmo_tx_free(tx->running, block));
}

/** The root of a name and type, made of zeros if missing: see pmo_tx_root. NULL if the heap is full
 * and cannot grow. */
static inline void *pmo_block_root(struct pmo_block *tx, const void *object, const char *name, const struct pmo_type *type)
{
    return pmo_block_got(tx, pmo_tx_root(tx->running, object, name, type));
}

/** Makes the transaction run alone in its pool, from its beginning. */
static inline void pmo_block_alone(struct pmo_block *tx)
{
    pmo_block_step(tx, pmo_tx_alone(tx->running));
}

/** Calls body as a transaction on count objects. If it returns 0, the transaction commits, else it
 * is undone. The result is an enum pmo_tx_result. */
static inline int pmo_transaction(void *const *objects, size_t count, int (*body)(struct pmo_block *tx, void *context), void *context)
{
    int result;
    PMO_TX_OF (tx, result, objects, count) {
        if (body(tx, context) != 0)
            PMO_TX_ABORT(tx);
    }
    return result;
}

#endif
#endif
