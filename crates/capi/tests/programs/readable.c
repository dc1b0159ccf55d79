/* Objects that are readable outside of transactions, in C: readable.c POOL; readable.c POOL store NAME, which dies of it; readable.c POOL look. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <pmo/transaction.h>

enum { CELLS = 64 };

struct cells {
    uint64_t cells[CELLS];
};

static pmo_pool *pool;

static struct cells *attached(const char *name)
{
    struct cells *object = pmo_attach_transactional(pool, name, NULL, 0);
    CHECK(object);
    return object;
}

static void make(const char *name, uint32_t durability)
{
    struct pmo_create_options options = {.size = sizeof(struct cells), .durability = durability, .flags = PMO_STAT_READABLE_OUTSIDE};
    struct pmo_stat stat;
    CHECK(pmo_create_with(pool, name, &options) == 0);
    CHECK(pmo_stat(pool, name, &stat) == 0 && stat.flags == PMO_STAT_READABLE_OUTSIDE);
}

static uint64_t load(const struct cells *object, int cell)
{
    return __atomic_load_n(&object->cells[cell], __ATOMIC_ACQUIRE);
}

static void loads_see_commits(const char *name)
{
    struct cells *object = attached(name);
    int result;
    CHECK(load(object, 0) == 0);
    PMO_TX (tx, result, object) {
        PMO_TX_STORE(tx, &object->cells[0], 7);
        PMO_TX_STORE(tx, &object->cells[CELLS - 1], 8);
        CHECK(load(object, 0) == 0 && load(object, CELLS - 1) == 0);
    }
    CHECK(result == PMO_TX_COMMITTED);
    CHECK(load(object, 0) == 7 && load(object, CELLS - 1) == 8);
    pmo_tx *running = pmo_tx_begin((void *const[]){object}, 1);
    uint64_t nine = 9;
    CHECK(running && pmo_tx_write(running, &object->cells[0], &nine, sizeof nine) == 0);
    CHECK(load(object, 0) == 7);
    CHECK(pmo_tx_abort(running) == 0);
    CHECK(load(object, 0) == 7);
    CHECK(pmo_detach(object) == 0);
    object = attached(name);
    CHECK(load(object, 0) == 7 && load(object, 1) == 0 && load(object, CELLS - 1) == 8);
    CHECK(pmo_detach(object) == 0);
}

static void is_said_and_refused(void)
{
    struct pmo_create_options options = {.size = 4096, .flags = PMO_STAT_READABLE_OUTSIDE};
    struct pmo_stat stat;
    FAILS(pmo_create_with(pool, "plain", &options) == -1, PMO_ERR_CLASS_MISMATCH, "neither transactional");
    options.flags |= PMO_STAT_ECC;
    FAILS(pmo_create_with(pool, "checked", &options) == -1, PMO_ERR_CLASS_MISMATCH, "check words");
    FAILS(pmo_set_readable_outside(pool, "strict", NULL, 0, 2) == -1, PMO_ERR_ARGUMENT, "or it is not");
    CHECK(pmo_set_readable_outside(pool, "strict", NULL, 0, 0) == 0);
    CHECK(pmo_stat(pool, "strict", &stat) == 0 && stat.flags == 0);
    CHECK(pmo_set_readable_outside(pool, "strict", NULL, 0, 1) == 0);
    CHECK(pmo_stat(pool, "strict", &stat) == 0 && stat.flags == PMO_STAT_READABLE_OUTSIDE);
}

int main(int argc, char **argv)
{
    pool = argc > 2 ? pmo_open(argv[1], 0) : pmo_format(argv[1], 16 << 20, 0);
    CHECK(pool);
    if (argc > 3) {
        struct cells *object = attached(argv[3]);
        printf("loaded %lu\n", (unsigned long)load(object, 0));
        fflush(stdout);
        *(volatile uint64_t *)&object->cells[0] = 9;
        puts("alive");
    } else if (argc > 2) {
        printf("%lu %lu\n", (unsigned long)load(attached("strict"), 0), (unsigned long)load(attached("relaxed"), 0));
    } else {
        make("strict", PMO_DURABILITY_TRANSACTIONAL);
        make("relaxed", PMO_DURABILITY_ON_DEMAND);
        loads_see_commits("strict");
        loads_see_commits("relaxed");
        is_said_and_refused();
        puts("done");
    }
    return 0;
}
