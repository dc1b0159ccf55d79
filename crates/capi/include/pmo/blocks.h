/* Transactional objects in blocks that GCC compiles with -fgnu-tm. Link with libpmo-tm and libpmo
 * (pkg-config --cflags --libs pmo pmo-tm).
 *
 *     struct bank { long accounts[64]; } *bank = pmo_attach_tm(pool, "bank", NULL, 0);
 *     __transaction_atomic {
 *         bank->accounts[1] -= 30;
 *         bank->accounts[2] += 30;
 *     } // durable
 *
 * Objects on demand (PMO_DURABILITY_ON_DEMAND) are attached the same way; pmo_tx_sync waits for the
 * blocks of all threads.
 *
 * Loads and stores of the object outside of blocks are a SIGSEGV; in __transaction_atomic blocks
 * also those of functions that GCC does not compile for them. __transaction_relaxed blocks may call
 * any function: such a block runs alone, and costs a fault for each page of an object that it
 * touches. A block whose changes cannot be made durable ends the program with a message. A block
 * changes objects of one pool and one class. In an object with check words (PMO_STAT_ECC), a block
 * that loads a damaged word repairs it; an irreparable word ends the program with a message. */
#ifndef PMO_BLOCKS_H
#define PMO_BLOCKS_H

#include <pmo.h>

#ifdef __cplusplus
extern "C" {
#endif

const struct pmo_tm_runtime *pmo_tm_runtime(void);

/** Allocates size bytes, as a part of the running block, in the heap of the attached object that
 * contains beside. They are undefined, and exist once the block has committed; their address is a
 * multiple of 16. A full heap grows, and the block runs again. NULL for an error, in pmo_errno:
 * PMO_ERR_HEAP_FULL if the heap cannot grow, PMO_ERR_NOT_A_HEAP if no pmo_tm_root has made one of
 * the object. malloc in a block gives memory of the process, which means nothing in the next run.
 */
void *pmo_tm_alloc(const void *beside, size_t size) __attribute__((transaction_safe));

/** Frees a block of pmo_tm_alloc, if the running block commits. NULL is ignored. -1 for an error,
 * in pmo_errno: nothing is freed. */
int pmo_tm_free(void *block) __attribute__((transaction_safe));

/** Returns the address of the root of this name and type, as a part of the running block, in the
 * heap of the attached object that contains beside. A new one is all zeros, and makes a heap of a
 * blank object, whose first byte the program cannot use. NULL for an error, as for pmo_tm_alloc;
 * PMO_ERR_EXISTS if the object has other contents, PMO_ERR_ROOT_TYPE if the root has another type.
 */
void *pmo_tm_root(const void *beside, const char *name, const struct pmo_type *type) __attribute__((transaction_safe));

#ifdef __cplusplus
}
#endif

/** Attaches a transactional object, or one on demand, for blocks, and returns its first byte: the
 * same address in every run. NULL for an error. */
static inline void *pmo_attach_tm(pmo_pool *pool, const char *name, const void *key, size_t key_len)
{
    return pmo_attach_for_blocks(pool, name, key, key_len, pmo_tm_runtime());
}

#endif
