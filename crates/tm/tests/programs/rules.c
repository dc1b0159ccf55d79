/* Rules of the library: reports the broken ones. rules.c retry: rules of rerun blocks. */
#include <stdio.h>
#include <string.h>

void _ITM_abortTransaction(int reason) __attribute__((transaction_pure));
void _ITM_addUserUndoAction(void (*function)(void *), void *argument) __attribute__((transaction_pure));

/* Visible outside, so that the compiler does not know it. */
int always = 1;
static int undone, broken;
static long shared;

static struct {
    unsigned char own, others;
    unsigned char rest[6];
} neighbours;

static void rule(const char *name, int holds)
{
    if (!holds) {
        printf("broken: %s\n", name);
        broken++;
    }
}

static void undo(void *argument)
{
    ++*(int *)argument;
}

static void undo_actions(void)
{
    __transaction_atomic
    {
        shared++;
        _ITM_addUserUndoAction(undo, &undone);
        if (always)
            __transaction_cancel;
    }
    rule("undo actions", undone == 1);
}

__attribute__((noinline)) static void cancelled(void)
{
    __transaction_atomic
    {
        shared += 5;
        if (always)
            __transaction_cancel;
    }
}

/* A caller's numbers in registers during a cancel. */
__attribute__((noinline)) static void registers(volatile long *numbers)
{
    long a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3], e = numbers[4], f = numbers[5];
    cancelled();
    rule("registers", a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6);
    rule("registers and stores", shared == 0);
}

__attribute__((transaction_safe, noinline)) static void fill(char *into, int count, char with)
{
    for (int i = 0; i < count; i++)
        into[i] = (char)(with + i);
}

__attribute__((transaction_safe, noinline)) static long deep(int count)
{
    char local[512];
    fill(local, count, 3);
    return local[count - 1];
}

static void frames(void)
{
    long got = 0;
    __transaction_atomic
    {
        shared += deep(512);
        got = shared;
        shared -= got;
    }
    rule("frames", got == (char)(3 + 511));
}

__attribute__((transaction_safe, noinline)) static void put(long *at, long value)
{
    *at = value;
}

__attribute__((transaction_safe, noinline)) static long get(const long *at)
{
    return *at;
}

static void inner(void)
{
    long seen = 0;
    __transaction_atomic
    {
        put(&shared, 10);
        __transaction_atomic
        {
            put(&shared, 20);
            if (always)
                __transaction_cancel;
        }
        seen = get(&shared);
        put(&shared, 0);
    }
    rule("inner blocks", seen == 10);
}

/* Its frame is made in the outer block, so that stores to it are in place. */
__attribute__((transaction_safe, noinline)) static long placed(void)
{
    long own[2] = {1, 2};
    put(own, 3);
    __transaction_atomic
    {
        put(own, 50);
        put(own + 1, 60);
        if (always)
            __transaction_cancel;
    }
    return 10 * get(own) + get(own + 1);
}

static void in_place(void)
{
    long got = 0;
    __transaction_atomic
    {
        put(&shared, 1);
        got = placed();
        put(&shared, 0);
    }
    rule("stores in place", got == 32);
}

/* Code outside of blocks, beside one. */
__attribute__((transaction_pure, noinline)) static void others(void)
{
    *(volatile unsigned char *)&neighbours.others = 9;
}

static void bytes(void)
{
    __transaction_atomic
    {
        neighbours.own = 7;
        others();
    }
    rule("neighbours", neighbours.own == 7 && neighbours.others == 9);
}

/* Whether this is the first run of a block. */
__attribute__((transaction_pure, noinline)) static int first(void)
{
    static int runs;
    return runs++ % 2 == 0;
}

__attribute__((noinline)) static void retried(void)
{
    __transaction_atomic
    {
        shared++;
        if (first())
            _ITM_abortTransaction(2);
    }
}

/* A sum in registers during reruns. */
__attribute__((noinline)) static long sum(volatile long *numbers)
{
    long a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3], all = 0;
    for (long i = 0; i < 10; i++) {
        retried();
        all += a + 10 * b + 100 * c + 1000 * d + i;
    }
    return all;
}

int main(int count, char **arguments)
{
    volatile long numbers[] = {1, 2, 3, 4, 5, 6};
    if (count > 1 && !strcmp(arguments[1], "retry")) {
        long all = sum(numbers);
        printf("sum %ld, %ld blocks\n", all, shared);
        return 0;
    }
    undo_actions();
    registers(numbers);
    frames();
    inner();
    in_place();
    bytes();
    if (broken == 0)
        puts("all rules hold");
    return broken != 0;
}
