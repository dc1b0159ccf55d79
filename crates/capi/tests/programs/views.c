/* Views in C: views POOL make, views POOL use, and views POOL run in `pmo run`. */
#include "check.h"
#include <pmo/resume.h>
#include <signal.h>
#include <unistd.h>

static uint64_t *at(size_t slot)
{
    return pmo_view_at(NULL, NULL, slot);
}

static void contexts(pmo_pool *pool)
{
    const char *const both[] = {"c", "d"};
    CHECK(pmo_context_create(pool, "c", 2) == 0 && pmo_context_create(pool, "d", 2) == 0);
    CHECK(pmo_context_rights(pool, both, 2, "a") == 0);
    CHECK(pmo_context_set(pool, "c", "a", PMO_RULE_ALLOW, PMO_RIGHT_READ) == 0);
    CHECK(pmo_context_rights(pool, both, 2, "a") == PMO_RIGHT_READ);
    CHECK(pmo_view_attach_in(pool, "v", both, 2) == 0);
    CHECK(*(uint64_t *)pmo_view_at(pool, "v", 0) == 0);
    FAILS(pmo_view_at(pool, "v", 1) == NULL, PMO_ERR_DENIED, "\"c\", \"d\"");
    CHECK(pmo_context_default(pool, "d", PMO_RIGHT_READ) == 0);
    CHECK(pmo_view_at(pool, "v", 1));
    CHECK(pmo_context_set(pool, "c", "d", PMO_RULE_DELEGATE, 0) == 0);
    CHECK(pmo_context_set(pool, "d", "a", PMO_RULE_MASK, 0) == 0);
    CHECK(pmo_context_set(pool, "d", "b", PMO_RULE_MASK, 0) == 0);
    CHECK(pmo_view_adopt(pool, "v") == 0);
    CHECK(pmo_view_at(pool, "v", 0));
    FAILS(pmo_view_at(pool, "v", 1) == NULL, PMO_ERR_DENIED, "");
    CHECK(pmo_context_clear(pool, "d", "b") == 0 && pmo_view_at(pool, "v", 1));
    CHECK(pmo_view_detach(pool, "v") == 0);
    FAILS(pmo_context_set(pool, "c", "b", PMO_RULE_ALLOW, PMO_RIGHT_READ) != 0, PMO_ERR_BAD_SIZE, "all 2 entries");
    FAILS(pmo_context_set(pool, "d", "c", PMO_RULE_DELEGATE, 0) != 0, PMO_ERR_UNSUITABLE, "circle");
    FAILS(pmo_context_set(pool, "c", "a", 4, 0) != 0, PMO_ERR_ARGUMENT, "the rule is 4");
    FAILS(pmo_context_set(pool, "c", "a", PMO_RULE_MASK, 8) != 0, PMO_ERR_ARGUMENT, "the rights are 8");
    FAILS(pmo_context_rights(pool, both, 2, "x") == -1, PMO_ERR_NOT_FOUND, "");
    FAILS(pmo_view_attach_in(pool, "v", NULL, 1) != 0, PMO_ERR_ARGUMENT, "NULL");
}

/* Whether this thread may access an address, by the kernel's answer. */
static int may(uint64_t *at, int store)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    int done = write(ends[1], at, 1) == 1 && (!store || read(ends[0], at, 1) == 1);
    close(ends[0]);
    close(ends[1]);
    return done;
}

static void switched(pmo_pool *pool)
{
    const char *const all[] = {"e", "f"};
    CHECK(pmo_context_create(pool, "e", 2) == 0 && pmo_context_create(pool, "f", 2) == 0);
    CHECK(pmo_context_set(pool, "e", "a", PMO_RULE_ALLOW, PMO_RIGHT_READ) == 0);
    CHECK(pmo_context_set(pool, "f", "a", PMO_RULE_ALLOW, PMO_RIGHT_READ | PMO_RIGHT_WRITE) == 0);
    FAILS(pmo_view_attach_switched(pool, "v", all, 0) != 0, PMO_ERR_UNSUITABLE, "no security context");
    CHECK(pmo_view_attach_switched(pool, "v", all, 2) == 0);
    uint64_t *a = pmo_view_at(pool, "v", 0);
    if (!a && pmo_errno() == PMO_ERR_UNSUITABLE) {
        puts("NOT TESTED: contexts of threads: this kernel finds stores by the protection of pages");
        CHECK(pmo_view_detach(pool, "v") == 0);
        return;
    }
    CHECK(a && !may(a, 0));
    FAILS(pmo_view_at(pool, "v", 1) == NULL, PMO_ERR_DENIED, "\"e\", \"f\"");
    CHECK(pmo_view_enter(pool, "v", all, 1) == 0);
    CHECK(may(a, 0) && !may(a, 1));
    CHECK(pmo_view_enter(pool, "v", all + 1, 1) == 0);
    CHECK(may(a, 1));
    *a = 0;
    CHECK(pmo_view_leave() == 0 && may(a, 0) && !may(a, 1));
    CHECK(pmo_view_leave() == 0 && !may(a, 0));
    CHECK(pmo_view_psync(pool, "v") == 0 && pmo_psync(a) == 0 && !may(a, 0));
    FAILS(pmo_view_leave() != 0, PMO_ERR_ARGUMENT, "pmo_view_enter");
    CHECK(pmo_view_enter(pool, "v", all, 2) == 0 && pmo_view_enter(pool, "v", all, 2) == 0 && may(a, 1));
    CHECK(pmo_view_leave_all() == 0 && !may(a, 0));
    FAILS(pmo_view_enter(pool, "v", (const char *const[]){"c"}, 1) != 0, PMO_ERR_NOT_FOUND, "\"c\"");
    CHECK(pmo_view_detach(pool, "v") == 0);
    CHECK(pmo_view_attach(pool, "v") == 0);
    FAILS(pmo_view_enter(pool, "v", all, 1) != 0, PMO_ERR_ARGUMENT, "pmo_view_attach_switched");
    CHECK(pmo_view_detach(pool, "v") == 0);
}

static void make(pmo_pool *pool)
{
    CHECK(pmo_create(pool, "a", 4096) == 0 && pmo_create(pool, "b", 4096) == 0);
    CHECK(pmo_view_create(pool, "v", 4) == 0);
    CHECK(pmo_view_set(pool, "v", 0, "a", PMO_RIGHT_READ | PMO_RIGHT_WRITE) == 0);
    CHECK(pmo_view_set(pool, "v", 1, "b", PMO_RIGHT_READ) == 0);
    FAILS(pmo_view_set(pool, "v", 2, "a", PMO_RIGHT_READ) != 0, PMO_ERR_ADDRESS_TAKEN, "slots 0 and 2");
    FAILS(pmo_view_set(pool, "v", 2, "c", PMO_RIGHT_READ) != 0, PMO_ERR_NOT_FOUND, "");
    FAILS(pmo_view_set(pool, "v", 9, "b", PMO_RIGHT_READ) != 0, PMO_ERR_BAD_SIZE, "4 slots");
    FAILS(pmo_view_set(pool, "v", 2, "b", 8) != 0, PMO_ERR_ARGUMENT, "the rights are 8");
    FAILS(pmo_view_attach(pool, "a") != 0, PMO_ERR_UNSUITABLE, "no view");
    contexts(pool);
    switched(pool);
}

static void use(pmo_pool *pool)
{
    struct pmo_stat stat;
    FAILS(pmo_view_at(pool, "v", 0) == NULL, PMO_ERR_ARGUMENT, "not attached");
    FAILS(pmo_view_at(pool, NULL, 0) == NULL, PMO_ERR_ARGUMENT, "pmo_view_start");
    CHECK(pmo_view_attach(pool, "v") == 0);
    FAILS(pmo_view_attach(pool, "v") != 0, PMO_ERR_ARGUMENT, "already");
    CHECK(pmo_stat(pool, "a", &stat) == 0);
    uint64_t *a = (uint64_t *)(uintptr_t)stat.address;
    *a = 7; /* attaches it */
    CHECK(pmo_view_at(pool, "v", 0) == a && pmo_psync(a) == 0);
    FAILS(pmo_detach(a) != 0, PMO_ERR_UNSUITABLE, "a view has it");
    CHECK(*(uint64_t *)pmo_view_at(pool, "v", 1) == 0);
    FAILS(pmo_view_at(pool, "v", 3) == NULL, PMO_ERR_NOT_FOUND, "slot 3 is empty");
    CHECK(pmo_view_set(pool, "v", 3, "b", PMO_RIGHT_READ) != 0);
    CHECK(pmo_view_clear(pool, "v", 1) == 0);
    CHECK(pmo_view_at(pool, "v", 1));
    CHECK(pmo_view_adopt(pool, "v") == 0);
    FAILS(pmo_view_at(pool, "v", 1) == NULL, PMO_ERR_NOT_FOUND, "slot 1 is empty");
    *a = 8;
    CHECK(pmo_view_psync(pool, "v") == 0);
    *a = 9;
    CHECK(pmo_view_detach(pool, "v") == 0);
    CHECK(pmo_view_attach(pool, "v") == 0 && *a == 8);
    CHECK(pmo_view_detach(pool, "v") == 0);
}

/* After a death. */
int _resume(int argc, char **argv)
{
    CHECK(argc == 3 && strcmp(argv[2], "run") == 0);
    printf("resumed: %d, lost %d %d\n", (int)*at(0), pmo_view_lost(0), pmo_view_lost(1));
    return 5;
}

static void run(int argc, char **argv)
{
    CHECK(pmo_resume(argc, argv) == 0);
    *at(0) = 41;
    CHECK(pmo_view_psync(NULL, NULL) == 0);
    *at(0) = 42;
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    pmo_pool *pool;
    CHECK(argc == 3);
    if (strcmp(argv[2], "run") == 0) {
        run(argc, argv);
        return 1;
    }
    FAILS(pmo_resume(argc, argv) != 0, PMO_ERR_ARGUMENT, "PMO_VIEW is not set");
    CHECK((pool = pmo_open(argv[1], 0)));
    if (strcmp(argv[2], "make") == 0)
        make(pool);
    else
        use(pool);
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
