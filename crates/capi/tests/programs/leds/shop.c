/* Versions of one program: the test inserts each one's extensions. shop POOL COMMAND. */
#include "../check.h"
#include <pthread.h>

extendible struct item {
    int id;
    double price;
    struct item *next;
    /*EXTENSIONS*/
};

struct shop {
    struct item *first;
    struct item shelf[3];
};
PMO_TYPE(shop, PMO_POINTS_TO(struct item *, first, item), PMO_NESTED(struct item[3], shelf, item))

static char *heap;
static struct shop *shop;

static struct item *add(int id)
{
    struct item *it = pmo_malloc(heap, sizeof(struct item));
    CHECK(it);
    it->id = id;
    it->price = id / 2.0;
    it->next = shop->first;
    shop->first = it;
    return it;
}

static void show(const struct item *it)
{
    printf("%d %g", it->id, it->price);
#if VERSION >= 2
    printf(" %d %s", it->stock, it->code);
#endif
#if VERSION >= 3
    printf(" %g", it->gross);
#endif
    puts("");
}

/* Blocks besides the shop's and its items'. */
static void blocks(void)
{
    struct pmo_heap_stats stats;
    int items = 0;
    for (struct item *it = shop->first; it; it = it->next)
        items++;
    CHECK(pmo_heap_stats(heap, &stats) == 0 && pmo_heap_check(heap, NULL, NULL) == 0);
    printf("%d items, %d extensions\n", items, (int)stats.blocks - 1 - items);
}

#if VERSION >= 2
static void change(struct item *it)
{
    it->stock += 1000;
    it->code[0] = 'c';
#if VERSION >= 3
    it->gross = -1;
#endif
}

static void *count(void *argument)
{
    (void)argument;
    for (struct item *it = shop->first; it; it = it->next)
        __atomic_fetch_add(&it->stock, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* First stores by several threads, beside cuts. */
static void race(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 2000; i++)
        add(i);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(pmo_psync_flags(heap, PMO_PSYNC_CUT) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (struct item *it = shop->first; it; it = it->next)
        CHECK(it->stock == it->id * 10 + 4);
}

static void grow(void)
{
    for (int id = 0;; id++) {
        struct item *it = add(id);
        CHECK(pmo_psync(heap) == 0);
        it->stock = 1000 + id;
        it->code[0] = 'w';
        CHECK(pmo_psync(heap) == 0);
        puts("psynced");
        fflush(stdout);
    }
}

static void whole(void)
{
    struct pmo_heap_stats stats;
    int items = 0, extended = 0;
    for (struct item *it = shop->first; it; it = it->next, items++) {
        int made = it->stock == 1000 + it->id;
        CHECK(made ? it->code[0] == 'w' : it->stock == it->id * 10 && it->code[0] == 'n');
        extended += made;
    }
    CHECK(pmo_heap_stats(heap, &stats) == 0 && pmo_heap_check(heap, NULL, NULL) == 0);
    CHECK((int)stats.blocks == 1 + items + extended);
    printf("%d\n", extended);
}
#endif

static void run(const char *command)
{
    if (strcmp(command, "make") == 0) {
        for (int id = 0; id < 4; id++)
            add(id);
        shop->shelf[1].id = 9;
    } else if (strcmp(command, "copy") == 0) {
        struct item *it = add(0), *next = it->next;
        struct item seen = *next;
        *it = *next;
        it->next = next;
        CHECK(it->id == seen.id);
    } else if (strcmp(command, "drop") == 0) {
        struct item *it = shop->first;
        shop->first = it->next;
        CHECK(pmo_free(it) == 0);
    } else if (strcmp(command, "clear") == 0) {
        while (shop->first)
            run("drop");
        CHECK(pmo_root_remove(heap, "shop") == 0 && pmo_free(shop) == 0);
        struct pmo_heap_stats stats;
        CHECK(pmo_heap_stats(heap, &stats) == 0 && stats.blocks == 0);
#if VERSION >= 2
    } else if (strcmp(command, "change") == 0) {
        change(shop->first);
        change(&shop->shelf[1]);
    } else if (strcmp(command, "race") == 0) {
        race();
    } else if (strcmp(command, "grow") == 0) {
        grow();
    } else if (strcmp(command, "whole") == 0) {
        whole();
    } else if (strcmp(command, "fill") == 0) {
        while (pmo_malloc(heap, 16))
            ;
        struct item *it = shop->first;
        CHECK(PMO_EXTEND(it) == -1 && pmo_errno() == PMO_ERR_HEAP_FULL && it->stock == it->id * 10);
        it->stock = 1; /* ends the program */
#endif
    } else {
        CHECK(strcmp(command, "show") == 0);
        for (struct item *it = shop->first; it; it = it->next)
            show(it);
        show(&shop->shelf[1]);
        blocks();
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    struct pmo_stat stat;
    CHECK(pool);
    int is_new = pmo_stat(pool, "shop", &stat) != 0, reads = strcmp(argv[2], "show") == 0;
    CHECK(!is_new || pmo_create(pool, "shop", 2 << 20) == 0);
    heap = pmo_attach(pool, "shop", reads ? PMO_READ : PMO_WRITE, NULL, 0);
    CHECK(heap && (reads || pmo_heap_open_or_format(heap, 0) == 0));
    if (is_new) {
        shop = pmo_malloc(heap, sizeof *shop);
        CHECK(shop);
        shop->first = NULL;
        for (int i = 0; i < 3; i++)
            shop->shelf[i].id = 0;
        CHECK(pmo_root_create(heap, "shop", shop, sizeof *shop, PMO_TYPEOF(shop)) == 0);
    }
    shop = pmo_root(heap, "shop", PMO_TYPEOF(shop));
    CHECK(shop);
    run(argv[2]);
    CHECK(pmo_psync(heap) == 0 && pmo_detach(heap) == 0);
    return 0;
}
