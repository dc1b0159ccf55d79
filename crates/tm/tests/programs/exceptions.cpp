// Exceptions, new and delete, actions, and modes of blocks: the output is the same on any run-time
// library.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <unistd.h>
#include <sys/wait.h>

extern "C" {
typedef void (*action)(void *);
void _ITM_addUserCommitAction(action, unsigned long, void *) __attribute__((transaction_pure));
void _ITM_addUserUndoAction(action, void *) __attribute__((transaction_pure));
int _ITM_inTransaction(void) __attribute__((transaction_pure));
int _ITM_versionCompatible(int);
}

static int counter, runs;

struct thrown {
    int value;
};

static int throws(int n)
{
    try {
        __transaction_atomic
        {
            counter += n;
            if (n > 1)
                throw n;
            counter += 100;
        }
    } catch (int value) {
        return value;
    }
    return 0;
}

struct node {
    node *next;
    int value;
};

__attribute__((transaction_safe, noinline)) static node *push(node *list, int value)
{
    node *made = new node;
    made->next = list;
    made->value = value;
    return made;
}

static node *list;

static int lists()
{
    int sum = 0;
    __transaction_atomic
    {
        for (int i = 0; i < 10; i++)
            list = push(list, i);
        int *array = new int[20];
        array[4] = 5;
        sum += array[4];
        delete[] array;
    }
    __transaction_atomic
    {
        list = push(list, 99);
        if (list->value == 99)
            __transaction_cancel;
    }
    __transaction_atomic
    {
        while (list != nullptr) {
            node *gone = list;
            list = gone->next;
            sum += gone->value;
            delete gone;
        }
    }
    return sum;
}

static void say(void *what)
{
    std::printf("%s\n", static_cast<const char *>(what));
}

static char committed[] = "committed", undone[] = "undone", first[] = "undone first";

static void actions(bool cancels)
{
    __transaction_atomic
    {
        counter++;
        _ITM_addUserCommitAction(say, 1, committed);
        _ITM_addUserUndoAction(say, undone);
        _ITM_addUserUndoAction(say, first);
        if (cancels)
            __transaction_cancel;
    }
}

static int unsafe(int n)
{
    return ++runs + n;
}

// A function without a clone makes the block irrevocable, wherever it is called.
static int (*volatile chosen)(int) = unsafe;

static int irrevocable()
{
    int result = 0;
    __transaction_relaxed
    {
        counter += 10;
        result = chosen(counter);
        result += 1000 * _ITM_inTransaction();
        counter += 10;
    }
    return result;
}

// A fork's child, within a block and outside, runs blocks of its own.
static int child_in_a_block()
{
    int result = -1;
    __transaction_relaxed
    {
        counter++;
        const pid_t child = fork();
        if (child == 0) {
            counter += 5;
        } else {
            int status;
            waitpid(child, &status, 0);
            result = WEXITSTATUS(status);
        }
    }
    if (result == -1) {
        __transaction_atomic
        {
            counter++;
        }
        _exit(counter & 127);
    }
    return result;
}

static void *ends_in_a_block(void *)
{
    __transaction_relaxed
    {
        counter++;
        pthread_exit(nullptr);
    }
    return nullptr;
}

static void *counts(void *)
{
    for (int i = 0; i < 20000; i++) {
        __transaction_atomic
        {
            counter++;
        }
        if (i % 1000 == 0)
            throws(2);
    }
    return nullptr;
}

int main(int count, char **)
{
    std::printf("version %d %d\n", _ITM_versionCompatible(90), _ITM_versionCompatible(91));
    std::printf("outside %d\n", _ITM_inTransaction());
    std::printf("thrown %d %d\n", throws(1), throws(7));
    std::printf("counter %d, exceptions under way %d\n", counter, std::uncaught_exceptions());
    std::printf("lists %d\n", lists());
    actions(false);
    actions(true);
    std::printf("after a cancel: counter %d\n", counter);
    counter = 200;
    std::printf("irrevocable %d, runs %d, counter %d\n", irrevocable(), runs, counter);
    std::fflush(stdout);
    std::printf("child %d, counter %d\n", child_in_a_block(), counter);
    pthread_t threads[4];
    for (auto &thread : threads)
        pthread_create(&thread, nullptr, counts, nullptr);
    for (auto &thread : threads)
        pthread_join(thread, nullptr);
    std::printf("counter %d\n", counter);
    if (count > 1) {
        pthread_create(&threads[0], nullptr, ends_in_a_block, nullptr);
        pthread_join(threads[0], nullptr);
        __transaction_atomic
        {
            counter++;
        }
        std::printf("after a thread that ended in a block %d\n", counter);
    }
}
