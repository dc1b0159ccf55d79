/* Transactions in C: transactions.c POOL; transactions.c POOL FAULT, which dies; transactions.c POOL die, which is killed at random; transactions.c POOL look. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <pmo/transaction.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCOUNTS = 32, SUM = ACCOUNTS * 100, THREADS = 4 };

struct node {
    struct node *next;
    uint16_t small;
    uint8_t byte;
    char text[21];
};

struct bank {
    int64_t accounts[ACCOUNTS];
    uint64_t transfers;
    struct node *first;
    struct node nodes[4];
    unsigned char odd[64];
};

static struct bank *bank, *branch;

static void *attached(pmo_pool *pool, const char *name, uint64_t size)
{
    struct pmo_stat stat;
    if (pmo_stat(pool, name, &stat) != 0) {
        struct pmo_create_options options = {.size = size, .durability = PMO_DURABILITY_TRANSACTIONAL};
        CHECK(pmo_create_with(pool, name, &options) == 0);
        CHECK(pmo_stat(pool, name, &stat) == 0);
    }
    CHECK(stat.durability == PMO_DURABILITY_TRANSACTIONAL);
    void *object = pmo_attach_transactional(pool, name, NULL, 0);
    CHECK(object == (void *)stat.address);
    return object;
}

static int64_t take(struct pmo_block *tx, int64_t *account, int64_t amount)
{
    int64_t left = PMO_TX_LOAD(tx, account) - amount;
    if (left < 0)
        PMO_TX_ABORT(tx);
    PMO_TX_STORE(tx, account, left);
    return left;
}

static int transfer(unsigned from, unsigned to, int64_t amount)
{
    int result;
    PMO_TX (tx, result, bank, branch) {
        take(tx, &bank->accounts[from], amount);
        PMO_TX_STORE(tx, &branch->accounts[to], PMO_TX_LOAD(tx, &branch->accounts[to]) + amount);
        PMO_TX_STORE(tx, &bank->transfers, PMO_TX_LOAD(tx, &bank->transfers) + 1);
        PMO_TX_STORE(tx, &branch->transfers, PMO_TX_LOAD(tx, &branch->transfers) + 1);
    }
    return result;
}

static int fill(struct pmo_block *tx, void *context)
{
    (void)context;
    for (int i = 0; i < ACCOUNTS; i++) {
        PMO_TX_STORE(tx, &bank->accounts[i], 100);
        PMO_TX_STORE(tx, &branch->accounts[i], 0);
    }
    return 0;
}

/* Both objects' sum and numbers of transfers, as of one moment. */
static uint64_t whole(void)
{
    int result;
    volatile uint64_t transfers = 0;
    PMO_TX (tx, result, bank, branch) {
        int64_t sum = 0;
        for (int i = 0; i < ACCOUNTS; i++)
            sum += PMO_TX_LOAD(tx, &bank->accounts[i]) + PMO_TX_LOAD(tx, &branch->accounts[i]);
        if (sum != SUM || PMO_TX_LOAD(tx, &bank->transfers) != PMO_TX_LOAD(tx, &branch->transfers))
            PMO_TX_ABORT(tx);
        transfers = PMO_TX_LOAD(tx, &bank->transfers);
    }
    CHECK(result == PMO_TX_COMMITTED);
    return transfers;
}

static void *transfers(void *context)
{
    unsigned seed = 7 + (unsigned)(uintptr_t)context;
    for (int i = 0; i < 200; i++) {
        unsigned from = (unsigned)rand_r(&seed) % ACCOUNTS, to = (unsigned)rand_r(&seed) % ACCOUNTS;
        int result = transfer(from, to, rand_r(&seed) % 3);
        CHECK(result != PMO_TX_FAILED);
        if (i % 20 == 0)
            whole();
    }
    return NULL;
}

static void count(void *context)
{
    ++*(int *)context;
}

static void commits_and_aborts(void)
{
    void *const objects[] = {bank, branch};
    int result, commits = 0, aborts = 0;
    CHECK(pmo_transaction(objects, 2, fill, NULL) == PMO_TX_COMMITTED);
    CHECK(transfer(0, 0, 101) == PMO_TX_ABORTED && transfer(0, 0, 100) == PMO_TX_COMMITTED);
    CHECK(whole() == 1);
    PMO_TX (tx, result, bank) {
        PMO_TX_STORE(tx, &bank->accounts[1], 5);
        CHECK(PMO_TX_LOAD(tx, &bank->accounts[1]) == 5);
        CHECK(pmo_tx_on_commit(tx->running, count, &commits) == 0);
        CHECK(pmo_tx_on_abort(tx->running, count, &aborts) == 0);
        CHECK(pmo_tx_on_abort(tx->running, count, &aborts) == 0);
        PMO_TX_ABORT(tx);
        CHECK(!"come to");
    }
    CHECK(result == PMO_TX_ABORTED && commits == 0 && aborts == 2);
    int before = 0;
    PMO_TX (tx, result, bank) {
        before = (int)PMO_TX_LOAD(tx, &bank->accounts[1]);
        CHECK(pmo_tx_on_commit(tx->running, count, &commits) == 0);
        break;
    }
    CHECK(result == PMO_TX_COMMITTED && commits == 1 && aborts == 2);
    (void)before;
    whole();
}

static int leaves(void)
{
    int result;
    PMO_TX (tx, result, bank) {
        PMO_TX_STORE(tx, &bank->accounts[1], -1);
        return 7;
    }
    return result;
}

static void sizes_and_pointers(void)
{
    int result;
    const struct node values[2] = {{&bank->nodes[1], 40000, 200, "first"}, {NULL, 1, 2, "second, and longer"}};
    PMO_TX (tx, result, bank) {
        PMO_TX_STORE(tx, &bank->nodes[0], values[0]);
        PMO_TX_STORE(tx, &bank->nodes[1], values[1]);
        PMO_TX_STORE(tx, &bank->first, &bank->nodes[0]);
        PMO_TX_STORE(tx, &bank->nodes[1].small, 65535);
        PMO_TX_STORE(tx, &bank->nodes[1].byte, 255);
        for (unsigned i = 0; i < 32; i++)
            PMO_TX_STORE(tx, &bank->odd[i + 1], (unsigned char)(3 * i));
        uint32_t misaligned = 0xAABBCCDD;
        pmo_block_write(tx, &bank->odd[39], &misaligned, 4);
        uint64_t across = 0x1122334455667788;
        pmo_block_write(tx, &bank->odd[44], &across, 8);
    }
    CHECK(result == PMO_TX_COMMITTED);
    volatile int seen = 0;
    PMO_TX (tx, result, bank) {
        struct node *at = PMO_TX_LOAD(tx, &bank->first);
        struct node first = PMO_TX_LOAD(tx, at), second = PMO_TX_LOAD(tx, first.next);
        CHECK(first.small == 40000 && first.byte == 200 && !strcmp(first.text, "first"));
        CHECK(second.small == 65535 && second.byte == 255 && !strcmp(second.text, "second, and longer"));
        CHECK(second.next == NULL && PMO_TX_LOAD(tx, &bank->odd[0]) == 0 && PMO_TX_LOAD(tx, &bank->odd[32]) == 93);
        unsigned char odd[20];
        pmo_block_read(tx, &bank->odd[37], odd, 19);
        CHECK(odd[1] == 0 && odd[2] == 0xDD && odd[5] == 0xAA && odd[6] == 0 && odd[7] == 0x88 && odd[14] == 0x11);
        seen = 1;
    }
    CHECK(result == PMO_TX_COMMITTED && seen);
}

static void *foreign(void *context)
{
    int64_t value;
    FAILS(pmo_tx_read(context, &bank->accounts[0], &value, 8) == -1, PMO_ERR_ARGUMENT, "another thread's");
    FAILS(pmo_tx_commit(context) == -1, PMO_ERR_ARGUMENT, "another thread's");
    return NULL;
}

static void bad_input(pmo_pool *pool, const char *path)
{
    int64_t value = 1;
    void *const one[] = {bank}, *const nowhere[] = {&value};
    FAILS(!pmo_tx_begin(one, 0), PMO_ERR_NOT_ATTACHED, "needs an object");
    FAILS(!pmo_tx_begin(NULL, 1), PMO_ERR_ARGUMENT, "list of objects");
    FAILS(!pmo_tx_begin(nowhere, 1), PMO_ERR_NOT_ATTACHED, "begin a transaction");
    FAILS(pmo_tx_commit(NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_attach(pool, "bank", PMO_WRITE, NULL, 0), PMO_ERR_CLASS_MISMATCH, "transactional");
    CHECK(pmo_create(pool, "plain", 4096) == 0);
    FAILS(!pmo_attach_transactional(pool, "plain", NULL, 0), PMO_ERR_CLASS_MISMATCH, "psync");
    void *psynced = pmo_attach(pool, "plain", PMO_WRITE, NULL, 0);
    void *const mixed[] = {bank, psynced};
    FAILS(!pmo_tx_begin(mixed, 2), PMO_ERR_CLASS_MISMATCH, "plain");
    CHECK(pmo_detach(psynced) == 0);
    FAILS(pmo_set_durability(pool, "plain", NULL, 0, 77) == -1, PMO_ERR_ARGUMENT, "durability 77");
    FAILS(pmo_set_durability(pool, "plain", NULL, 0, -1) == -1, PMO_ERR_ARGUMENT, "durability");
    CHECK(pmo_set_durability(pool, "plain", NULL, 0, PMO_DURABILITY_TRANSACTIONAL) == 0);
    FAILS(pmo_set_durability(pool, "bank", NULL, 0, PMO_DURABILITY_PSYNC) == -1, PMO_ERR_HELD, "bank");
    void *plain = pmo_attach_transactional(pool, "plain", NULL, 0);
    CHECK(plain);

    pmo_tx *tx = pmo_tx_begin(one, 1);
    CHECK(tx);
    FAILS(!pmo_tx_begin(one, 1), PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(pmo_psync(bank) == -1, PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(pmo_detach(bank) == -1, PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(!pmo_attach_transactional(pool, "other", NULL, 0), PMO_ERR_IN_TRANSACTION, "running on this thread");
    FAILS(pmo_tx_write(tx, plain, &value, 8) == -1, PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    FAILS(pmo_tx_write(tx, &value, &value, 8) == -1, PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    FAILS(pmo_tx_read(tx, (char *)bank + 4093, &value, 4) == -1, PMO_ERR_NOT_ATTACHED, "no object of the transaction");
    FAILS(pmo_tx_read(tx, bank, &value, (size_t)-1) == -1, PMO_ERR_ARGUMENT, "longer than memory");
    FAILS(pmo_tx_read(tx, bank, NULL, 8) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(pmo_tx_on_commit(tx, NULL, NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    CHECK(pmo_tx_read(tx, (char *)bank + 4092, &value, 4) == 0 && pmo_tx_read(tx, NULL, NULL, 0) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, foreign, tx) == 0 && pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        FAILS(pmo_tx_read(tx, bank, &value, 8) == -1, PMO_ERR_FORKED, "fork");
        FAILS(pmo_tx_write(tx, bank, &value, 8) == -1, PMO_ERR_FORKED, "fork");
        FAILS(pmo_tx_commit(tx) == -1, PMO_ERR_FORKED, "fork");
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pmo_tx_write(tx, &bank->odd[63], "!", 1) == 0 && pmo_tx_commit(tx) == 0);
    FAILS(pmo_tx_abort(tx) == -1, PMO_ERR_ARGUMENT, "is over");
    pmo_tx *newer = pmo_tx_begin(one, 1);
    CHECK(newer && newer != tx);
    FAILS(pmo_tx_read(tx, bank, &value, 8) == -1, PMO_ERR_ARGUMENT, "is over");
    CHECK(pmo_tx_abort(newer) == 0);

    char other_path[512];
    snprintf(other_path, sizeof other_path, "%s-2", path);
    pmo_pool *other_pool = pmo_format(other_path, 16 << 20, 0);
    CHECK(other_pool);
    void *other = attached(other_pool, "other", 4096);
    void *const two[] = {bank, other};
    FAILS(!pmo_tx_begin(two, 2), PMO_ERR_DIFFERENT_POOLS, "bank");
    CHECK(pmo_detach(other) == 0 && pmo_close(other_pool) == 0 && pmo_detach(plain) == 0);
}

static void *ends_inside(void *context)
{
    void *const objects[] = {bank};
    pmo_tx *tx = pmo_tx_begin(objects, 1);
    int64_t value = -1;
    CHECK(tx && pmo_tx_write(tx, &bank->accounts[3], &value, 8) == 0);
    (void)context;
    pthread_exit(NULL);
}

/* More than the log has room for at first. */
static void large(pmo_pool *pool)
{
    enum { BYTES = 6 << 20 };
    unsigned char *object = attached(pool, "large", BYTES), *bytes = malloc(BYTES);
    int result;
    volatile int runs = 0;
    memset(bytes, 0xA5, BYTES);
    PMO_TX (tx, result, object) {
        runs = runs + 1;
        pmo_block_write(tx, object, bytes, BYTES);
    }
    CHECK(result == PMO_TX_COMMITTED && runs >= 2);
    memset(bytes, 0, BYTES);
    PMO_TX (tx, result, object) {
        pmo_block_alone(tx);
        pmo_block_read(tx, object, bytes, BYTES);
    }
    CHECK(result == PMO_TX_COMMITTED && bytes[0] == 0xA5 && bytes[BYTES - 1] == 0xA5);
    CHECK(pmo_detach(object) == 0);
    /* Code behind this call runs once, even if the log has no room at first. */
    unsigned char *larger = attached(pool, "larger", 3 * BYTES);
    runs = 0;
    PMO_TX (tx, result, larger) {
        pmo_block_alone(tx);
        runs = runs + 1;
        for (int i = 0; i < 3; i++)
            pmo_block_write(tx, larger + i * BYTES, bytes, BYTES);
    }
    CHECK(result == PMO_TX_COMMITTED && runs == 1 && pmo_detach(larger) == 0);
    free(bytes);
}

static void told_of(uint64_t done, uint64_t all, void *context)
{
    CHECK(done <= all && all == 4096);
    *(uint64_t *)context = done;
}

static void with_check_words(pmo_pool *pool)
{
    struct pmo_create_options options = {.size = 100, .flags = PMO_STAT_ECC};
    CHECK(pmo_create_with(pool, "checked", &options) == 0);
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, "checked", &stat) == 0);
    CHECK(stat.size == 4096 && stat.flags == PMO_STAT_ECC && stat.durability == PMO_DURABILITY_TRANSACTIONAL);
    struct bank *checked = pmo_attach_transactional(pool, "checked", NULL, 0);
    CHECK((uint64_t)checked == stat.address);
    int result;
    PMO_TX (tx, result, checked) {
        PMO_TX_STORE(tx, &checked->accounts[3], 7);
        PMO_TX_STORE(tx, &checked->nodes[1].small, 0xABCD);
        PMO_TX_STORE(tx, &checked->nodes[1].byte, PMO_TX_LOAD(tx, &checked->nodes[1].small) & 0xFF);
    }
    CHECK(result == PMO_TX_COMMITTED && pmo_detach(checked) == 0);
    struct pmo_scrubbed scrubbed;
    uint64_t done = 0;
    CHECK(pmo_scrub(pool, "checked", NULL, 0, told_of, &done, &scrubbed) == 0 && done == 4096);
    CHECK(scrubbed.words == 512 && scrubbed.repaired == 0 && scrubbed.lost == 0 && scrubbed.first_lost == 0);
    CHECK(pmo_scrub(pool, "checked", NULL, 0, NULL, NULL, NULL) == 0);
    const struct bank *read = pmo_attach(pool, "checked", PMO_READ, NULL, 0);
    CHECK(read && read->accounts[3] == 7 && read->nodes[1].small == 0xABCD && read->nodes[1].byte == 0xCD);
    CHECK(pmo_detach((void *)read) == 0);
    FAILS(pmo_scrub(pool, "checked", NULL, 0, NULL, NULL, (struct pmo_scrubbed *)1) == -1, PMO_ERR_ARGUMENT, "misaligned");
    FAILS(pmo_scrub(pool, "absent", NULL, 0, NULL, NULL, NULL) == -1, PMO_ERR_NOT_FOUND, "absent");
    FAILS(pmo_attach(pool, "checked", PMO_WRITE, NULL, 0) == NULL, PMO_ERR_CLASS_MISMATCH, "transactional");
    FAILS(pmo_set_durability(pool, "checked", NULL, 0, PMO_DURABILITY_PSYNC) == -1, PMO_ERR_CLASS_MISMATCH, "check words");
    CHECK(pmo_detach(bank) == 0);
    FAILS(pmo_scrub(pool, "bank", NULL, 0, NULL, NULL, NULL) == -1, PMO_ERR_CLASS_MISMATCH, "no check words");
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 128 << 20, 0);
    CHECK(pool);
    bank = attached(pool, "bank", 4096), branch = attached(pool, "branch", 4096);
    if (argc > 2 && getenv("EXPLAINED"))
        CHECK(pmo_explain_faults() == 0);
    if (argc > 2 && !strcmp(argv[2], "store outside"))
        bank->accounts[0] = 1;
    if (argc > 2 && !strcmp(argv[2], "load outside"))
        return (int)bank->accounts[0];
    if (argc > 2 && !strcmp(argv[2], "store inside")) {
        int result;
        PMO_TX (tx, result, bank)
            bank->accounts[0] = 1;
    }
    if (argc > 2 && !strcmp(argv[2], "die")) {
        void *const objects[] = {bank, branch};
        CHECK(pmo_transaction(objects, 2, fill, NULL) == PMO_TX_COMMITTED);
        for (unsigned i = 0;; i++) {
            int result = transfer(i % ACCOUNTS, (i * 7) % ACCOUNTS, i % 3);
            CHECK(result != PMO_TX_FAILED);
            if (result == PMO_TX_COMMITTED) {
                printf("transfer %u\n", i);
                fflush(stdout);
            }
        }
    }
    if (argc > 2 && !strcmp(argv[2], "look")) {
        printf("%lu\n", (unsigned long)whole());
        return 0;
    }
    commits_and_aborts();
    CHECK(leaves() == 7);
    whole();
    sizes_and_pointers();
    bad_input(pool, argv[1]);
    pthread_t threads[THREADS];
    CHECK(pthread_create(&threads[0], NULL, ends_inside, NULL) == 0 && pthread_join(threads[0], NULL) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, transfers, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    uint64_t done = whole();
    CHECK(done > 100);
    CHECK(pmo_detach(bank) == 0 && pmo_detach(branch) == 0);
    FAILS(pmo_detach(bank) == -1, PMO_ERR_NOT_ATTACHED, "detach");
    bank = attached(pool, "bank", 4096), branch = attached(pool, "branch", 4096);
    CHECK(whole() == done && pmo_psync(bank) == 0);
    large(pool);
    with_check_words(pool);
    puts("done");
    return 0;
}
