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

/* The beginning of an extension. Links and identities are loaded as atomics: another thread may
 * store them. */
struct pmo_extension_head {
    uint64_t next;
    uint64_t size;
    uint64_t description;
};

/* The offset of the fields in the block, for their alignment. */
#define PMO_EXTENSION_FIELDS(align) ((sizeof(struct pmo_extension_head) + (align) - 1) / (align) * (align))

/* The fields of an extension if it exists and has the program's type; else NULL. A link to the
 * object's first byte is none: no identity is there. */
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

/* The fields of an extension known to exist. */
static inline void *pmo_extension_there(const struct pmo_extensions *link, size_t number, size_t align)
{
    uint64_t at = __atomic_load_n(&link->link, __ATOMIC_RELAXED);
    while (--number > 0)
        at = __atomic_load_n(&((struct pmo_extension_head *)(uintptr_t)at)->next, __ATOMIC_RELAXED);
    return (char *)(uintptr_t)at + PMO_EXTENSION_FIELDS(align);
}

/* ---- parts of the output of `pmo leds` ---- */

/* The end of an access to an extension that cannot be made: the heap is full, or the struct is in
 * no object, or damaged. A PMO_EXTEND before it returns -1 instead. In C++, pmo.hpp has it throw.
 */
#ifndef PMO_EXTENSION_FAILED
#define PMO_EXTENSION_FAILED(of) ((void)pmo_extension_failed(of))
#endif

/* Frees all extensions of *it, also those unknown to this program; -1: it is unchanged. */
#define PMO_LEDS_BARE(tag)                                                                        \
    static inline int pmo_leds_##tag##_none(struct tag *it)                                       \
    {                                                                                             \
        char bare[sizeof(struct tag)] __attribute__((aligned(__alignof__(struct tag))));          \
        __builtin_memcpy(bare, it, sizeof bare);                                                  \
        ((struct tag *)(void *)bare)->extensions.link = 0;                                        \
        return pmo_extended_copy(it, bare, pmo_type_##tag());                                     \
    }

/* Makes all extensions of struct tag, of which there are count, or fails. */
#define PMO_LEDS_ALL(tag, count)                                                                  \
    PMO_LEDS_BARE(tag)                                                                            \
    static inline int pmo_leds_##tag##_try(struct tag *it)                                        \
    {                                                                                             \
        return pmo_extend(it, &it->extensions, pmo_leds_of_##tag, count) ? 0 : -1;                \
    }                                                                                             \
    static inline void pmo_leds_##tag##_all(struct tag *it)                                       \
    {                                                                                             \
        if (pmo_leds_##tag##_try(it))                                                             \
            PMO_EXTENSION_FAILED(#tag);                                                           \
    }

/* For a struct tag without extensions. */
#define PMO_LEDS_NONE(tag)                                                                        \
    PMO_LEDS_BARE(tag)                                                                            \
    static inline int pmo_leds_##tag##_try(struct tag *it)                                        \
    {                                                                                             \
        (void)it;                                                                                 \
        return 0;                                                                                 \
    }                                                                                             \
    static inline void pmo_leds_##tag##_all(struct tag *it)                                       \
    {                                                                                             \
        (void)it;                                                                                 \
    }

/* The initial values of an extension, as the library asks for them. */
#define PMO_LEDS_INIT(tag, number)                                                                \
    static inline void pmo_leds_computed_##tag##_##number(const void *it, void *fields)           \
    {                                                                                             \
        pmo_leds_init_##tag##_##number((struct tag *)(uintptr_t)it,                               \
                                       (struct tag##Extension##number *)fields);                  \
    }

/* Accessors of an extension's fields: for stores, where it is known to exist, for loads. */
#define PMO_LEDS_EXTENSION(tag, number)                                                           \
    static inline struct tag##Extension##number *pmo_leds_##tag##_##number(struct tag *it)        \
    {                                                                                             \
        void *at = pmo_extension_at(&it->extensions, pmo_leds_of_##tag, number,                   \
                                    __alignof__(struct tag##Extension##number));                  \
        if (!at && !(at = pmo_extend(it, &it->extensions, pmo_leds_of_##tag, number)))            \
            PMO_EXTENSION_FAILED(#tag);                                                           \
        return (struct tag##Extension##number *)at;                                               \
    }                                                                                             \
    static inline struct tag##Extension##number *pmo_leds_##tag##_##number##_there(struct tag *it) \
    {                                                                                             \
        return (struct tag##Extension##number *)pmo_extension_there(                              \
            &it->extensions, number, __alignof__(struct tag##Extension##number));                 \
    }                                                                                             \
    static inline const struct tag##Extension##number *pmo_leds_##tag##_##number##_read(          \
        const struct tag *it, struct tag##Extension##number *initial)                             \
    {                                                                                             \
        const void *at = pmo_extension_at(&it->extensions, pmo_leds_of_##tag, number,             \
                                          __alignof__(struct tag##Extension##number));            \
        if (!at && !(at = pmo_extended(it, &it->extensions, pmo_leds_of_##tag, number, initial))) \
            PMO_EXTENSION_FAILED(#tag);                                                           \
        return (const struct tag##Extension##number *)at;                                         \
    }                                                                                             \
    PMO_LEDS_PASSED(tag, number)

/* In C++, with initial values in a temporary. */
#ifdef __cplusplus
#define PMO_LEDS_PASSED(tag, number)                                                              \
    static inline const struct tag##Extension##number *pmo_leds_##tag##_##number##_passed(        \
        const struct tag *it, struct tag##Extension##number &&initial)                            \
    {                                                                                             \
        return pmo_leds_##tag##_##number##_read(it, &initial);                                    \
    }
#else
#define PMO_LEDS_PASSED(tag, number)
#endif

/* The value of a field that is no array. */
#define PMO_LEDS_FIELD(tag, number, field)                                                        \
    static inline __typeof__(((struct tag##Extension##number *)0)->field)                         \
        pmo_leds_##tag##_get_##field(const struct tag *it)                                        \
    {                                                                                             \
        struct tag##Extension##number initial;                                                    \
        return pmo_leds_##tag##_##number##_read(it, &initial)->field;                             \
    }

/* An assignment of a struct. */
#define PMO_LEDS_COPY(to, from, type, of)                                                         \
    (pmo_extended_copy(to, from, type) == 0 ? (void)0 : PMO_EXTENSION_FAILED(of))

/* Copies the structs in so many bytes, which may overlap; -1: some were copied, each as a whole. */
static inline int pmo_leds_copies(void *to, const void *from, size_t bytes, const struct pmo_type *type)
{
    size_t count = bytes / type->size;
    int is_up = (uintptr_t)to > (uintptr_t)from;
    for (size_t i = 0; i < count; i++) {
        size_t at = (is_up ? count - 1 - i : i) * type->size;
        if (pmo_extended_copy((char *)to + at, (const char *)from + at, type))
            return -1;
    }
    return 0;
}

/* memcpy, or memmove, of whole structs. */
#define PMO_LEDS_COPIES(to, from, bytes, type)                                                    \
    (__extension__({                                                                              \
        void *pmo_leds_to = (to);                                                                 \
        const struct pmo_type *pmo_leds_of = (type);                                              \
        if (pmo_leds_copies(pmo_leds_to, from, bytes, pmo_leds_of))                               \
            PMO_EXTENSION_FAILED(pmo_leds_of->name);                                              \
        pmo_leds_to;                                                                              \
    }))

#endif
