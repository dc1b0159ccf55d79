/* Persistent variables in C: found by name and type, with their initial value the first time.
 *
 *     PMO_STATIC(uint64_t, hits, 0)
 *     ...
 *     void *statics = pmo_attach_statics(NULL); // of the pool that PMO_POOL names
 *     int result;
 *     PMO_TX (tx, result, statics)
 *         PMO_TX_STORE(tx, hits(tx, statics), PMO_TX_LOAD(tx, hits(tx, statics)) + 1);
 *
 * They are roots in the heap of the pool's transactional object "statics", which one process at a
 * time attaches. The first transaction that uses one and commits gives it its initial value. */
#ifndef PMO_STATIC_H
#define PMO_STATIC_H

#include <pmo/transaction.h>
#include <string.h>

/** Attaches the statics of a pool, or, for NULL, of the pool that PMO_POOL names; makes them if
 * missing. NULL for an error: PMO_ERR_HELD if another process has them for longer than pmo_wait
 * says. pmo_detach detaches them. */
static inline void *pmo_attach_statics(pmo_pool *pool)
{
    void *statics = pmo_attach_transactional(pool, "statics", NULL, 0);
    if (statics != NULL || pmo_errno() != PMO_ERR_NOT_FOUND)
        return statics;
    struct pmo_create_options options;
    memset(&options, 0, sizeof options);
    options.size = 65536;
    options.durability = PMO_DURABILITY_TRANSACTIONAL;
    if (pmo_create_with(pool, "statics", &options) != 0 && pmo_errno() != PMO_ERR_EXISTS)
        return NULL;
    return pmo_attach_transactional(pool, "statics", NULL, 0);
}

#ifndef __cplusplus

/** Declares a persistent variable, at file scope: a number, a pointer into an object, or an array
 * of such; its name, which is the root's; its initial value. The function of its name returns its
 * address in the statics that a block uses, for PMO_TX_LOAD and PMO_TX_STORE. With another type in
 * the pool, the block fails with PMO_ERR_ROOT_TYPE; NULL: the heap is full and cannot grow. */
#define PMO_STATIC(type, name, ...)                                                                 \
    struct pmo_static_##name {                                                                      \
        __typeof__(type) value;                                                                     \
        uint64_t made;                                                                              \
    };                                                                                              \
    PMO_TYPE_WAS(pmo_static_##name, "static " #name, PMO_FIELD(type, value), PMO_FIELD(uint64_t, made)) \
    static inline __typeof__(type) *name(struct pmo_block *tx, const void *statics)                 \
    {                                                                                               \
        static const __typeof__(type) initial = __VA_ARGS__;                                        \
        struct pmo_static_##name *root =                                                            \
            pmo_block_root(tx, statics, #name, PMO_TYPEOF(pmo_static_##name));                      \
        if (root == NULL)                                                                           \
            return NULL;                                                                            \
        if (PMO_TX_LOAD(tx, &root->made) == 0) {                                                    \
            pmo_block_write(tx, &root->value, &initial, sizeof initial);                            \
            PMO_TX_STORE(tx, &root->made, 1);                                                       \
        }                                                                                           \
        return &root->value;                                                                        \
    }

#endif
#endif
