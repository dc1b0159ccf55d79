/* Extensions of structs, found without a call: part of pmo.h. */
#ifndef PMO_EXTENSIONS_H
#define PMO_EXTENSIONS_H

#include <pmo.h>

/* The type of a link, for descriptions. */
static inline const struct pmo_type *pmo_type_pmo_extensions(void)
{
    static const struct pmo_type type = {"Extensions", sizeof(struct pmo_extensions), NULL, 0, PMO_EXTENSIONS,
                                         __alignof__(struct pmo_extensions)};
    return &type;
}

/* The beginning of an extension. Links and identities are loaded as atomics: another thread may store them. */
struct pmo_extension_head {
    uint64_t next;
    uint64_t size;
    uint64_t description;
};

/* Where the fields lie in the block, if their alignment is this. */
#define PMO_EXTENSION_FIELDS(align) ((sizeof(struct pmo_extension_head) + (align) - 1) / (align) * (align))

/* The fields of the extension of a number if it was made, and is known to be of the program's type; else NULL. A link to the
 * object's first byte is none: no identity is found there. */
static inline void *pmo_extension_at(const struct pmo_extensions *link, const struct pmo_extension *all, size_t number,
                                     size_t align)
{
    uint64_t at = __atomic_load_n(&link->link, __ATOMIC_ACQUIRE);
    for (size_t i = 0; at != 0; i++) {
        struct pmo_extension_head *head = (struct pmo_extension_head *)(uintptr_t)at;
        uint64_t identity = __atomic_load_n(&all[i].identity, __ATOMIC_RELAXED);
        if (identity == 0 || head->description != identity)
            return NULL;
        if (i + 1 == number)
            return (char *)head + PMO_EXTENSION_FIELDS(align);
        at = __atomic_load_n(&head->next, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

/* The same, of one that is known to be there. */
static inline void *pmo_extension_there(const struct pmo_extensions *link, size_t number, size_t align)
{
    uint64_t at = __atomic_load_n(&link->link, __ATOMIC_RELAXED);
    while (--number > 0)
        at = __atomic_load_n(&((struct pmo_extension_head *)(uintptr_t)at)->next, __ATOMIC_RELAXED);
    return (char *)(uintptr_t)at + PMO_EXTENSION_FIELDS(align);
}

#endif
