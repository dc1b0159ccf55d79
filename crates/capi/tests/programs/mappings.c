/* Blocks that cannot be undone touch distant pages, each a mapping of the kernel: mappings.c POOL.
 */
#include "check.h"
#include <pmo/blocks.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 4096, SPARE = 300, MOST = 70000 };

static volatile char *object;

static int mappings(void)
{
    char line[512];
    int lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps))
        lines++;
    fclose(maps);
    return lines;
}

/* Adds one to a number in every seventh page, in an order without neighbours. */
static void touch(long n)
{
    __transaction_relaxed
    {
        __asm__ volatile("" ::: "memory");
        for (long at = 0; at < PAGES; at++) {
            const long page = at * 1237 % PAGES;
            if (page % 7 == n)
                ++*(volatile long *)(object + page * PAGE + 64);
        }
    }
}

static __attribute__((noinline)) long number(long page)
{
    long *at = (long *)((char *)object + page * PAGE + 64), value;
    __transaction_atomic { value = *at; }
    return value;
}

static void expect(long calls)
{
    for (long page = 0; page < PAGES; page++)
        CHECK(number(page) == (page % 7 < 3 ? calls : 0));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    CHECK(pool != NULL);
    struct pmo_create_options options = {.size = PAGES * PAGE, .durability = PMO_DURABILITY_TRANSACTIONAL};
    CHECK(pmo_create_with(pool, "large", &options) == 0);
    object = pmo_attach_tm(pool, "large", NULL, 0);
    CHECK(object != NULL);
    const int before = mappings();
    touch(0), touch(1), touch(2);
    expect(1);
    /* Pages of finished blocks are no mappings of their own. */
    const int after = mappings();
    if (after > before + 50) {
        fprintf(stderr, "%d mappings, and %d after blocks that touched %d pages\n", before, after, 3 * PAGES / 7);
        return 1;
    }
    /* The process is near its limit of mappings. */
    static void *others[MOST];
    int count = 0;
    for (; count < MOST; count++) {
        others[count] = mmap(NULL, PAGE, count % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (others[count] == MAP_FAILED)
            break;
    }
    if (count == MOST) {
        puts("no limit");
        return 0;
    }
    for (int gone = 0; gone < SPARE; gone++)
        CHECK(munmap(others[--count], PAGE) == 0);
    touch(0), touch(1), touch(2);
    expect(2);
    CHECK(pmo_detach((void *)object) == 0);
    while (count > 0)
        munmap(others[--count], PAGE);
    CHECK(pmo_close(pool) == 0);
    puts("done");
    return 0;
}
