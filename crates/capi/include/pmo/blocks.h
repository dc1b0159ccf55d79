/* Transactional objects in blocks that GCC compiles with -fgnu-tm: link with libpmo-tm and libpmo (pkg-config --cflags --libs pmo pmo-tm).
 *
 *     struct bank { long accounts[64]; } *bank = pmo_attach_tm(pool, "bank", NULL, 0);
 *     __transaction_atomic {
 *         bank->accounts[1] -= 30;
 *         bank->accounts[2] += 30;
 *     } // durable
 *
 * Outside of blocks, and in functions that GCC does not compile for them, a load or store of the object is a SIGSEGV. A block that changed an object and cannot be made
 * durable ends the program with a message, as nothing in the language would tell it. A block changes objects of one pool.
 */
#ifndef PMO_BLOCKS_H
#define PMO_BLOCKS_H

#include <pmo.h>

#ifdef __cplusplus
extern "C" {
#endif

const struct pmo_tm_runtime *pmo_tm_runtime(void);

#ifdef __cplusplus
}
#endif

/* Attaches a transactional object for blocks, and returns its first byte: the same address in every run. NULL for an error. */
static inline void *pmo_attach_tm(pmo_pool *pool, const char *name, const void *key, size_t key_len)
{
    return pmo_attach_for_blocks(pool, name, key, key_len, pmo_tm_runtime());
}

#endif
