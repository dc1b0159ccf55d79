/* A struct with extensions, lowered by hand. */
#include "check.h"
#include <pmo.h>
#include <pthread.h>
#include <string.h>

struct item {
    int32_t id;
    double price;
    struct pmo_extensions extensions;
};

PMO_TYPE(item, PMO_FIELD(int32_t, id), PMO_FIELD(double, price),
         PMO_NESTED(struct pmo_extensions, extensions, pmo_extensions))

struct itemExtension1 {
    int32_t stock;
};

PMO_TYPE(itemExtension1, PMO_FIELD(int32_t, stock))

struct itemExtension2 {
    int64_t discount;
    char code[20];
};

PMO_TYPE(itemExtension2, PMO_FIELD(int64_t, discount), PMO_FIELD(char[20], code))

struct pair {
    char name[3];
    struct item of[2];
};

PMO_TYPE(pair, PMO_FIELD(char[3], name), PMO_NESTED(struct item[2], of, item))

static int computed;

static void init_1(const void *base, void *fields)
{
    const struct item *it = base;
    struct itemExtension1 *own = fields;
    computed++;
    own->stock = it->id * 10;
}

static struct pmo_extension all[2];

static void init_2(const void *base, void *fields)
{
    const struct item *it = base;
    struct itemExtension2 *own = fields;
    struct itemExtension1 initial;
    const struct itemExtension1 *before = pmo_extended(base, &it->extensions, all, 1, &initial);
    CHECK(before);
    own->discount = before->stock + 1;
}

static struct pmo_extension all[2] = {{"item", pmo_type_itemExtension1, init_1, 0},
                                      {"item", pmo_type_itemExtension2, init_2, 0}};

static void endless(const void *base, void *fields)
{
    const struct item *it = base;
    static struct pmo_extension self[] = {{"item", pmo_type_itemExtension1, endless, 0}};
    if (!pmo_extended(base, &it->extensions, self, 1, fields))
        CHECK(pmo_errno() == PMO_ERR_ARGUMENT || pmo_errno() == PMO_ERR_ROOT_TYPE);
}

static uint64_t blocks(void *heap)
{
    struct pmo_heap_stats stats;
    CHECK(pmo_heap_stats(heap, &stats) == 0 && pmo_heap_check(heap, NULL, NULL) == 0);
    return stats.blocks;
}

static void *extends(void *it)
{
    struct item *item = it;
    CHECK(pmo_extend(item, &item->extensions, all, 2) != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pmo_pool *pool = pmo_format(argv[1], 64 << 20, 0);
    CHECK(pool && pmo_create(pool, "o", 4 << 20) == 0);
    char *heap = pmo_attach(pool, "o", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_format(heap, 0) == 0);

    struct pair *pair = pmo_calloc(heap, 1, sizeof *pair);
    CHECK(pair && pmo_root_create(heap, "pair", pair, sizeof *pair, PMO_TYPEOF(pair)) == 0);
    struct item *it = &pair->of[1];
    it->id = 4;

    struct itemExtension2 second;
    const struct itemExtension2 *two = pmo_extended(it, &it->extensions, all, 2, &second);
    CHECK(two == &second && two->discount == 41 && two->code[0] == 0 && it->extensions.link == 0 && blocks(heap) == 1);

    /* A store makes it and the earlier ones, once. */
    struct itemExtension2 *stored = pmo_extend(it, &it->extensions, all, 2);
    CHECK(stored && stored->discount == 41 && blocks(heap) == 3 && computed == 2);
    stored->discount = 7;
    strcpy(stored->code, "code");
    CHECK(pmo_extend(it, &it->extensions, all, 2) == stored && computed == 2);
    CHECK(pmo_extended(it, &it->extensions, all, 2, &second) == stored);
    CHECK(pmo_extension_at(&it->extensions, all, 2, __alignof__(struct itemExtension2)) == stored);
    CHECK(pmo_extension_there(&it->extensions, 2, __alignof__(struct itemExtension2)) == stored);
    it->id = 5;
    struct itemExtension1 first;
    const struct itemExtension1 *one = pmo_extended(it, &it->extensions, all, 1, &first);
    CHECK(one && one->stock == 40);

    CHECK(pmo_extended_copy(&pair->of[0], it, PMO_TYPEOF(item)) == 0 && blocks(heap) == 5);
    struct itemExtension2 *copied = pmo_extend(&pair->of[0], &pair->of[0].extensions, all, 2);
    CHECK(copied && copied != stored && copied->discount == 7 && strcmp(copied->code, "code") == 0);
    copied->discount = 8;
    CHECK(stored->discount == 7);
    CHECK(pmo_extended_copy(&pair->of[0], it, PMO_TYPEOF(item)) == 0 && blocks(heap) == 5);
    CHECK(pmo_extended_copy(it, it, PMO_TYPEOF(item)) == 0 && blocks(heap) == 5);
    struct pair *other = pmo_calloc(heap, 1, sizeof *other);
    CHECK(other && pmo_extended_copy(other, pair, PMO_TYPEOF(pair)) == 0 && blocks(heap) == 10);
    CHECK(pmo_extended_free(other, 2, PMO_TYPEOF(pair)) == -1 && pmo_errno() == PMO_ERR_BAD_SIZE && blocks(heap) == 10);
    CHECK(pmo_extended_free(other, 1, PMO_TYPEOF(pair)) == 0 && blocks(heap) == 5);
    CHECK(pmo_extended_free(other, 1, PMO_TYPEOF(pair)) == -1 && pmo_errno() == PMO_ERR_DOUBLE_FREE);
    CHECK(pmo_extended_free(NULL, 1, PMO_TYPEOF(pair)) == 0);

    /* A value outside of objects has initial values only; it is copied to the heap, not from it. */
    struct item local = {.id = 1, .price = 2};
    CHECK(pmo_extended(&local, &local.extensions, all, 1, &first) == &first && first.stock == 10);
    CHECK(pmo_extend(&local, &local.extensions, all, 1) == NULL && pmo_errno() == PMO_ERR_NOT_ATTACHED);
    CHECK(pmo_extended_copy(&local, it, PMO_TYPEOF(item)) == -1 && local.id == 1 && blocks(heap) == 5);
    CHECK(pmo_extended_copy(&pair->of[0], &local, PMO_TYPEOF(item)) == 0 && blocks(heap) == 3 && pair->of[0].id == 1);

    /* An extension of another type, and endless initial values. */
    struct pmo_extension wrong[] = {{"item", pmo_type_itemExtension2, NULL, 0}};
    CHECK(pmo_extended(it, &it->extensions, wrong, 1, &second) == NULL && pmo_errno() == PMO_ERR_ROOT_TYPE);
    CHECK(strstr(pmo_error_message(), "extension 1 of item"));
    CHECK(pmo_extend(it, &it->extensions, wrong, 1) == NULL && pmo_errno() == PMO_ERR_ROOT_TYPE);
    struct pmo_extension turns[] = {{"item", pmo_type_itemExtension1, endless, 0}};
    CHECK(pmo_extended(&local, &local.extensions, turns, 1, &first) == &first && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_extended(it, &it->extensions, all, 0, &first) == NULL && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_extended(it, NULL, all, 1, &first) == NULL && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_extended(&local, &local.extensions, all, 1, NULL) == NULL && pmo_errno() == PMO_ERR_ARGUMENT);

    for (int i = 0; i < 200; i++) {
        pthread_t threads[3];
        struct item *shared = pmo_calloc(heap, 1, sizeof *shared);
        CHECK(shared);
        for (int t = 0; t < 3; t++)
            CHECK(pthread_create(&threads[t], NULL, extends, shared) == 0);
        CHECK(i % 20 || pmo_psync_flags(heap, PMO_PSYNC_CUT) == 0);
        for (int t = 0; t < 3; t++)
            CHECK(pthread_join(threads[t], NULL) == 0);
        CHECK(blocks(heap) == 6 && pmo_extended_free(shared, 1, PMO_TYPEOF(item)) == 0);
    }

    CHECK(pmo_psync(heap) == 0 && pmo_detach(heap) == 0 && pmo_attach(pool, "o", PMO_READ, NULL, 0) == heap);
    CHECK(pmo_root(heap, "pair", PMO_TYPEOF(pair)) == pair);
    CHECK(pmo_extended(it, &it->extensions, all, 2, &second) == stored && stored->discount == 7);
    CHECK(pmo_extended(&pair->of[0], &pair->of[0].extensions, all, 2, &second) == &second && second.discount == 11);
    CHECK(!pmo_extend(&pair->of[0], &pair->of[0].extensions, all, 1) && pmo_errno() == PMO_ERR_READ_ONLY);
    CHECK(pmo_detach(heap) == 0);

    /* A dangling link is an error, and nothing is freed. */
    CHECK(pmo_attach(pool, "o", PMO_WRITE, NULL, 0) == heap);
    CHECK(pmo_extended_free(pair, 1, PMO_TYPEOF(pair)) == -1 && pmo_errno() == PMO_ERR_ROOT_EXISTS && blocks(heap) == 3);
    CHECK(pmo_root_remove(heap, "pair") == 0);
    uint64_t link = it->extensions.link;
    it->extensions.link = (uintptr_t)heap + (4 << 20);
    CHECK(pmo_extend(it, &it->extensions, all, 2) == NULL && pmo_errno() == PMO_ERR_DAMAGED);
    CHECK(pmo_extended_free(pair, 1, PMO_TYPEOF(pair)) == -1 && pmo_errno() == PMO_ERR_DAMAGED && blocks(heap) == 3);
    it->extensions.link = link;
    ((struct pmo_extension_head *)(uintptr_t)link)->next = link;
    CHECK(pmo_extended_free(pair, 1, PMO_TYPEOF(pair)) == -1 && pmo_errno() == PMO_ERR_DAMAGED && blocks(heap) == 3);
    ((struct pmo_extension_head *)(uintptr_t)link)->next = (uintptr_t)stored - PMO_EXTENSION_FIELDS(8);
    CHECK(pmo_extended_free(pair, 1, PMO_TYPEOF(pair)) == 0 && blocks(heap) == 0);
    CHECK(pmo_detach(heap) == 0 && pmo_close(pool) == 0);
    puts("done");
    return 0;
}
