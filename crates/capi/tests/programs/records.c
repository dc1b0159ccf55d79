/* Transactions that record bytes before they change, with explicit and with other tracking. */
#include "check.h"
#include <pmo.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct account {
    uint64_t from, to, transfers;
};

static struct account *account;

static void *move(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        CHECK(pmo_txstart(account) == 0);
        CHECK(PMO_TXRECORD(account->from) == 0 && PMO_TXRECORD(account->to) == 0);
        account->from -= 1;
        account->to += 1;
        CHECK(PMO_TXRECORD(account->transfers) == 0);
        account->transfers += 1;
        /* Every third is aborted, and every ninth by the end of a thread. */
        CHECK((i % 3 == 0 ? pmo_txabort() : pmo_txend()) == 0);
    }
    return NULL;
}

static void *leave(void *unused)
{
    (void)unused;
    CHECK(pmo_txstart(account) == 0);
    CHECK(PMO_TXRECORD(account->from) == 0);
    account->from = 7777;
    return NULL;
}

static void in_one(pmo_pool *pool, const char *name)
{
    pthread_t threads[4];
    CHECK(pmo_create(pool, name, 4096) == 0);
    account = pmo_attach(pool, name, PMO_WRITE, NULL, 0);
    CHECK(account != NULL);
    CHECK(pmo_txstart(account) == 0 && PMO_TXRECORD(*account) == 0);
    account->from = 1000;
    CHECK(pmo_txend() == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, move, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(account->from == 1000 - 264 && account->to == 264 && account->transfers == 264);
    CHECK(pthread_create(&threads[0], NULL, leave, NULL) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(account->from == 1000 - 264);

    /* Bytes recorded twice go back to the first record. */
    CHECK(pmo_txstart(account) == 0);
    for (uint64_t value = 1; value < 4; value++) {
        CHECK(PMO_TXRECORD(account->to) == 0);
        account->to = value;
    }
    CHECK(pmo_txabort() == 0 && account->to == 264);

    CHECK(PMO_TXRECORD(account->to) == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_txend() == -1 && pmo_txabort() == -1);
    CHECK(pmo_txstart(account) == 0);
    CHECK(pmo_txstart(account) == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_txrecord(&account, 8) == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
    CHECK(pmo_txrecord((char *)account + 4090, 8) == -1);
    CHECK(pmo_txrecord(account, SIZE_MAX) == -1);
    CHECK(PMO_TXRECORD(account->to) == 0);
    account->to = 5;
    CHECK(pmo_detach(account) == 0);
    CHECK(pmo_txend() == -1 && pmo_errno() == PMO_ERR_NOT_ATTACHED);
    account = pmo_attach(pool, name, PMO_READ, NULL, 0);
    CHECK(account != NULL && account->from == 1000 - 264 && account->to == 264 && account->transfers == 264);
    CHECK(pmo_txstart(account) == -1);
    CHECK(pmo_detach(account) == 0);
    CHECK(pmo_txstart(&account) == -1 && pmo_errno() == PMO_ERR_NOT_ATTACHED);
}

/* A child that was forked in a transaction has none, and waits for none of its parent's. */
static void forked(const char *path)
{
    int detached[2], status;
    char byte;
    pmo_pool *pool = pmo_open(path, 0);
    CHECK(pool != NULL && pipe(detached) == 0);
    account = pmo_attach(pool, "found", PMO_WRITE, NULL, 0);
    CHECK(account != NULL && pmo_txstart(account) == 0 && PMO_TXRECORD(account->to) == 0);
    account->to = 9;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        CHECK(read(detached[0], &byte, 1) == 1);
        pool = pmo_open(path, 0);
        CHECK(pool != NULL && pmo_txend() == -1 && pmo_errno() == PMO_ERR_ARGUMENT);
        account = pmo_attach(pool, "found", PMO_WRITE, NULL, 0);
        CHECK(account != NULL && account->to == 9);
        CHECK(pmo_txstart(account) == 0 && PMO_TXRECORD(account->to) == 0);
        account->to = 10;
        CHECK(pmo_txend() == 0);
        _exit(0);
    }
    CHECK(child > 0 && pmo_txend() == 0 && pmo_detach(account) == 0 && pmo_close(pool) == 0);
    CHECK(write(detached[1], "", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A program without standard output prints nowhere, and not into its pool. */
static void without_output(const char *path)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(fclose(stdout) == 0 && pmo_open(path, 0) != NULL);
        CHECK(write(1, "x", 1) == -1);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    struct pmo_pool_options options = {.tracking = PMO_TRACKING_EXPLICIT};
    CHECK(argc == 2);
    pmo_pool *pool = pmo_format_with(argv[1], 1 << 24, &options);
    CHECK(pool != NULL);
    in_one(pool, "marked");
    CHECK(pmo_close(pool) == 0);
    pool = pmo_open(argv[1], 0);
    CHECK(pool != NULL);
    in_one(pool, "found");
    CHECK(pmo_close(pool) == 0);
    forked(argv[1]);
    without_output(argv[1]);
    puts("done");
    return 0;
}
