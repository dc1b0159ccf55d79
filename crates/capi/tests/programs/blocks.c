/* Persistent objects in blocks that GCC compiles: blocks.c POOL; blocks.c POOL FAULT, which dies;
 * blocks.c POOL die, which is killed; blocks.c POOL look; blocks.c POOL aloud, in a block that
 * cannot be undone. ON_DEMAND and CHECK_WORDS in the environment choose the objects' kind. */
#include "check.h"
#include <pmo/blocks.h>
#include <pmo/transaction.h>
#include <pthread.h>

enum { ACCOUNTS = 32, SUM = ACCOUNTS * 100, LARGE = 6 << 20 };

struct node {
    struct node *next;
    short value;
    char text[13];
};

struct bank {
    long accounts[ACCOUNTS];
    unsigned long transfers;
    struct node *first;
    struct node nodes[100];
    long used;
};

static struct bank *bank, *branch;
static long transfers_here;
static uint32_t durability = PMO_DURABILITY_TRANSACTIONAL;

static void *attached(pmo_pool *pool, const char *name, uint64_t size)
{
    struct pmo_create_options options = {.size = size, .durability = durability};
    options.flags = getenv("CHECK_WORDS") ? PMO_STAT_ECC : 0;
    CHECK(pmo_create_with(pool, name, &options) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    void *object = pmo_attach_tm(pool, name, NULL, 0);
    CHECK(object);
    return object;
}

static void fill(void)
{
    __transaction_atomic
    {
        for (int i = 0; i < ACCOUNTS; i++) {
            bank->accounts[i] = 100;
            branch->accounts[i] = 0;
        }
    }
}

static int transfer(int from, int to, long amount)
{
    int done = 0;
    __transaction_atomic
    {
        bank->accounts[from] -= amount;
        branch->accounts[to] += amount;
        bank->transfers++;
        branch->transfers++;
        transfers_here++;
        if (bank->accounts[from] < 0)
            __transaction_cancel;
        done = 1;
    }
    return done;
}

static unsigned long whole(void)
{
    long sum = 0;
    unsigned long transfers = 0, others = 0;
    __transaction_atomic
    {
        sum = 0;
        for (int i = 0; i < ACCOUNTS; i++)
            sum += bank->accounts[i] + branch->accounts[i];
        transfers = bank->transfers;
        others = branch->transfers;
    }
    CHECK(sum == SUM && transfers == others);
    return transfers;
}

__attribute__((transaction_safe, noinline)) static void push(short value, const char *text)
{
    struct node *node = &bank->nodes[bank->used++];
    node->value = value;
    for (int i = 0; i < 12 && text[i]; i++)
        node->text[i] = text[i];
    node->next = bank->first;
    bank->first = node;
}

static void list(void)
{
    __transaction_atomic
    {
        push(1, "one");
        push(2, "two");
        __transaction_atomic
        {
            push(3, "three");
            if (bank->used == 3)
                __transaction_cancel;
        }
    }
    struct node copy;
    long count = 0, sum = 0;
    __transaction_atomic
    {
        count = sum = 0;
        for (struct node *at = bank->first; at != NULL; at = at->next) {
            count++;
            sum += at->value;
        }
        copy = *bank->first;
    }
    CHECK(count == 2 && sum == 3 && !strcmp(copy.text, "two"));
}

static void *transfers(void *context)
{
    unsigned seed = 7 + (unsigned)(uintptr_t)context;
    for (int i = 0; i < 200; i++) {
        seed = seed * 1103515245 + 12345;
        transfer(seed >> 10 & 31, seed >> 16 & 31, seed >> 21 & 3);
        if (i % 50 == 0)
            whole();
    }
    return NULL;
}

__attribute__((noinline)) static int aloud(int account, long amount)
{
    __transaction_relaxed
    {
        bank->accounts[account] -= amount;
        fflush(stdout);
        branch->accounts[account] += amount;
        bank->transfers++;
        branch->transfers++;
    }
    return 1;
}

static void refusals(pmo_pool *pool)
{
    void *const one[] = {bank};
    FAILS(!pmo_tx_begin(one, 1), PMO_ERR_HELD, "detach them first");
    struct pmo_create_options options = {.size = 4096, .durability = durability};
    CHECK(pmo_create_with(pool, "other", &options) == 0 && pmo_create(pool, "plain", 4096) == 0);
    FAILS(!pmo_attach_transactional(pool, "other", NULL, 0), PMO_ERR_HELD, "detach them first");
    FAILS(!pmo_attach_tm(pool, "plain", NULL, 0), PMO_ERR_CLASS_MISMATCH, "psync");
    FAILS(!pmo_attach_for_blocks(pool, "other", NULL, 0, NULL), PMO_ERR_ARGUMENT, "run-time library");
    FAILS(!pmo_attach_tm(pool, "nothing", NULL, 0), PMO_ERR_NOT_FOUND, "nothing");
    __transaction_relaxed
    {
        FAILS(pmo_detach(bank) == -1, PMO_ERR_ARGUMENT, "a block runs on this thread");
        FAILS(!pmo_attach_tm(pool, "other", NULL, 0), PMO_ERR_ARGUMENT, "a block runs on this thread");
    }
}

static void write_down(long *into, long value)
{
    fflush(stdout);
    *into = value;
}

/* Blocks that cannot be undone: from the beginning or in between, with inner blocks. */
static void *irrevocable(void *context)
{
    (void)context;
    for (int i = 0; i < 50; i++) {
        __transaction_relaxed
        {
            write_down(&bank->accounts[0], bank->accounts[0] - 1);
            fflush(stdout);
            branch->accounts[0]++;
            bank->transfers++;
            branch->transfers++;
            transfers_here++;
        }
        __transaction_relaxed
        {
            bank->accounts[3]++;
            if (bank->transfers > 0)
                write_down(&branch->accounts[1], branch->accounts[1] - 1);
            __transaction_atomic
            {
                bank->accounts[3]++;
                branch->accounts[1]--;
            }
            __transaction_atomic
            {
                bank->accounts[3] = 1000000;
                transfers_here = -5;
                __transaction_cancel;
            }
            bank->transfers++;
            branch->transfers++;
            transfers_here++;
        }
        whole();
    }
    return NULL;
}

/* More than the log has room for at first. */
static void large(pmo_pool *pool)
{
    char *object = attached(pool, "large", LARGE);
    __transaction_atomic
    {
        memset(object, 0x5A, LARGE);
    }
    CHECK(pmo_detach(object) == 0);
    object = attached(pool, "large", LARGE);
    int right = 0;
    __transaction_atomic
    {
        right = object[0] == 0x5A && object[LARGE - 1] == 0x5A && object[LARGE / 2] == 0x5A;
    }
    CHECK(right);
    __transaction_relaxed
    {
        fflush(stdout);
        memset(object + 100, 0x77, LARGE - 300);
    }
    CHECK(pmo_detach(object) == 0);
    object = attached(pool, "large", LARGE);
    long count = 0;
    __transaction_relaxed
    {
        fflush(stdout);
        for (int i = 0; i < LARGE; i++)
            count += object[i] == 0x77;
        right = object[99] == 0x5A && object[100] == 0x77 && object[LARGE - 201] == 0x77 && object[LARGE - 200] == 0x5A;
    }
    CHECK(right && count == LARGE - 300 && pmo_detach(object) == 0);
}

static void are_pending(uint64_t transactions, uint64_t bytes)
{
    struct pmo_pending pending;
    CHECK(pmo_tx_pending(bank, &pending) == 0);
    if (pending.transactions != transactions || pending.bytes != bytes) {
        fprintf(stderr, "%lu transactions, %lu bytes\n", (unsigned long)pending.transactions, (unsigned long)pending.bytes);
        exit(1);
    }
}

static void durable_when_asked(pmo_pool *pool)
{
    CHECK(pmo_tx_sync(bank) == 0);
    are_pending(0, 0);
    CHECK(transfer(1, 2, 5) && transfer(2, 1, 0));
    /* The lines of four accounts, two in one line, and of two counts. */
    are_pending(2, 4 * 64);
    CHECK(!transfer(3, 4, 1000));
    are_pending(2, 4 * 64);
    CHECK(pmo_tx_sync(branch) == 0);
    are_pending(0, 0);
    CHECK(transfer(1, 2, 5));
    CHECK(pmo_psync(bank) == 0);
    are_pending(0, 0);
    /* One pending line at most: each block makes room for itself. */
    CHECK(pmo_set_epochs(pool, 0, 64) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(transfer(1, 2, 1));
    CHECK(pmo_set_epochs(pool, 10, 4 << 20) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    if (getenv("ON_DEMAND"))
        durability = PMO_DURABILITY_ON_DEMAND;
    pmo_pool *pool = pmo_open_or_format(argv[1], 128 << 20, 0);
    CHECK(pool);
    /* Before the thread of epochs exists, which could be about to make one. */
    if (argc == 2)
        CHECK(pmo_set_epochs(pool, 0, 4 << 20) == 0);
    bank = attached(pool, "bank", 8192), branch = attached(pool, "branch", 8192);
    if (argc > 2 && !strcmp(argv[2], "store outside"))
        bank->accounts[0] = 1;
    if (argc > 2 && !strcmp(argv[2], "two pools")) {
        char path[512];
        snprintf(path, sizeof path, "%s-2", argv[1]);
        pmo_pool *second = pmo_open_or_format(path, 16 << 20, 0);
        CHECK(second);
        struct bank *far = attached(second, "far", 8192);
        __transaction_atomic
        {
            bank->accounts[0]++;
            far->accounts[0]++;
        }
    }
    if (argc > 2 && !strcmp(argv[2], "two classes")) {
        durability = getenv("ON_DEMAND") ? PMO_DURABILITY_TRANSACTIONAL : PMO_DURABILITY_ON_DEMAND;
        struct bank *other = attached(pool, "of the other class", 8192);
        __transaction_atomic
        {
            other->accounts[0]++;
        }
        __transaction_atomic
        {
            bank->accounts[0]++;
            other->accounts[0]++;
        }
    }
    if (argc > 2 && !strcmp(argv[2], "die")) {
        fill();
        for (int i = 0;; i++)
            if (i % 8 == 7 ? aloud(i % ACCOUNTS, i % 3) : transfer(i % ACCOUNTS, (i * 7) % ACCOUNTS, i % 3)) {
                printf("transfer %d\n", i);
                fflush(stdout);
            }
    }
    if (argc > 2 && !strcmp(argv[2], "look")) {
        printf("%lu\n", whole());
        return 0;
    }
    if (argc > 2 && !strcmp(argv[2], "aloud")) {
        __transaction_relaxed
        {
            /* From here on it cannot be undone. */
            printf("the sum is ");
            long sum = 0;
            for (int i = 0; i < ACCOUNTS; i++)
                sum += bank->accounts[i] + branch->accounts[i];
            printf("%ld\n", sum);
        }
        return 0;
    }
    fill();
    CHECK(!transfer(0, 1, 101) && transfer(0, 1, 100) && whole() == 1 && transfers_here == 1);
    list();
    if (durability == PMO_DURABILITY_ON_DEMAND)
        durable_when_asked(pool);
    refusals(pool);
    pthread_t threads[4], alone;
    CHECK(pthread_create(&alone, NULL, irrevocable, NULL) == 0);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, transfers, (void *)i) == 0);
    large(pool);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_join(alone, NULL) == 0);
    unsigned long done = whole();
    CHECK(done > 100 && done == (unsigned long)transfers_here);
    if (durability == PMO_DURABILITY_ON_DEMAND) {
        CHECK(pmo_tx_sync(bank) == 0);
        are_pending(0, 0);
    }
    CHECK(pmo_detach(bank) == 0 && pmo_detach(branch) == 0);
    void *other = pmo_attach_transactional(pool, "other", NULL, 0);
    CHECK(other && pmo_detach(other) == 0);
    bank = attached(pool, "bank", 8192), branch = attached(pool, "branch", 8192);
    CHECK(whole() == done);
    puts("done");
    return 0;
}
