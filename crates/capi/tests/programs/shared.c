/* Processes share an object, wait for each other, and send messages: shared POOL. The other
 * process: shared POOL child. */
#include "check.h"
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MINUTE 60000000000

static const struct pmo_queue_options MANY = {.slots = 8, .most = 64};

static pmo_pool *opened(const char *path)
{
    pmo_pool *pool = pmo_open(path, 0);
    CHECK(pool);
    return pool;
}

static void child(const char *path)
{
    pmo_pool *pool = opened(path);
    char *object = pmo_attach_shared(pool, "shared", NULL, 0);
    CHECK(object);
    struct pmo_word words[] = {{(uint32_t *)(object + 64), 0, 0}, {(uint32_t *)object, 0, 0}};
    CHECK(pmo_wait_any(words, 2, MINUTE) == 1);
    pmo_queue *queue = pmo_queue_open(object + 4096, &MANY);
    CHECK(queue);
    for (int number = 0; number < 100; number++)
        CHECK(pmo_send(queue, &number, sizeof number, MINUTE) == 1);
    atomic_store((_Atomic uint64_t *)(object + 128), (uint64_t)(uintptr_t)object);
    CHECK(pmo_queue_close(queue) == 0 && pmo_detach(object) == 0 && pmo_close(pool) == 0);
}

static void parent(const char *program, const char *path)
{
    pmo_pool *pool = pmo_format(path, 16 << 20, 0);
    CHECK(pool);
    struct pmo_create_options options = {.size = 1 << 16, .durability = PMO_DURABILITY_SHARED};
    CHECK(pmo_create_with(pool, "shared", &options) == 0 && pmo_create(pool, "plain", 4096) == 0);
    FAILS(!pmo_attach(pool, "shared", PMO_WRITE, NULL, 0), PMO_ERR_CLASS_MISMATCH, "it is shared");
    FAILS(!pmo_attach_shared(pool, "plain", NULL, 0), PMO_ERR_CLASS_MISMATCH, "psync");
    char *object = pmo_attach_shared(pool, "shared", NULL, 0), *again = pmo_attach_shared(pool, "shared", NULL, 0);
    CHECK(object && object == again);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl(program, program, path, "child", (char *)NULL);
        _exit(127);
    }
    atomic_store((_Atomic uint32_t *)object, 1);
    CHECK(pmo_wake((uint32_t *)object, 1) >= 0);
    pmo_queue *queue = pmo_queue_open(object + 4096, &MANY);
    CHECK(queue);
    char message[64];
    for (int number = 0; number < 100; number++) {
        int received;
        CHECK(pmo_receive(queue, message, sizeof message, MINUTE) == (int64_t)sizeof received);
        memcpy(&received, message, sizeof received);
        CHECK(received == number);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(atomic_load((_Atomic uint64_t *)(object + 128)) == (uint64_t)(uintptr_t)object);
    CHECK(pmo_receive(queue, message, sizeof message, 0) == PMO_TIMED_OUT);
    CHECK(pmo_wait_word((uint32_t *)object, 1, 1000000) == 0 && pmo_wait_word((uint32_t *)object, 0, -1) == 1);
    for (size_t sent = 0; sent < MANY.slots; sent++)
        CHECK(pmo_send(queue, "full", 4, 0) == 1);
    CHECK(pmo_send(queue, "full", 4, 0) == 0);
    FAILS(pmo_send(queue, message, 65, 0) == -1, PMO_ERR_BAD_SIZE, "longer than the 64");
    FAILS(pmo_receive(queue, message, 63, 0) == -1, PMO_ERR_ARGUMENT, "no room");
    struct pmo_queue_options other = {.slots = 16, .most = 64};
    FAILS(!pmo_queue_open(object + 4096, &other), PMO_ERR_ROOT_TYPE, "other options");
    FAILS(!pmo_queue_open(object + 4096 + 32, &MANY), PMO_ERR_BAD_SIZE, "multiple of 64");
    FAILS(!pmo_queue_open(&other, &MANY), PMO_ERR_NOT_ATTACHED, "no attached object");
    FAILS(pmo_wake(&other.reserved, 1) == -1, PMO_ERR_NOT_ATTACHED, "no attached object");
    CHECK(pmo_queue_close(queue) == 0);
    FAILS(pmo_queue_close(queue) == -1, PMO_ERR_ARGUMENT, "not open");
    *(_Atomic uint64_t *)(object + 8) = 7;
    CHECK(pmo_detach(again) == 0 && pmo_detach(object) == 0);
    FAILS(pmo_detach(object) == -1, PMO_ERR_NOT_ATTACHED, "no attached object");
    CHECK(pmo_close(pool) == 0);
    puts("done");
}

int main(int argc, char **argv)
{
    if (argc > 2)
        child(argv[1]);
    else
        parent(argv[0], argv[1]);
    return 0;
}
