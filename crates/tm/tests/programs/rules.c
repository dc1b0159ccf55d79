/* Rules of the library, one by one: says which are broken. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

void _ITM_addUserUndoAction(void (*function)(void *), void *argument) __attribute__((transaction_pure));

static int always = 1, undone, broken;
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

/* Numbers of a caller that are in registers while a block is cancelled. */
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

static void inner(void)
{
    long seen = 0;
    __transaction_atomic
    {
        shared = 10;
        __transaction_atomic
        {
            shared = 20;
            if (always)
                __transaction_cancel;
        }
        seen = shared;
        shared = 0;
    }
    rule("inner blocks", seen == 10);
}

__attribute__((transaction_pure, noinline)) static void look(int *at)
{
    __asm__ volatile("" : : "r"(at) : "memory");
}

static void in_place(void)
{
    int own[4] = {1, 2, 3, 4};
    look(own);
    __transaction_atomic
    {
        shared++;
        own[1] = 20;
        own[3] = 40;
        look(own);
        if (always)
            __transaction_cancel;
    }
    look(own);
    rule("stores in place", own[1] == 2 && own[3] == 4);
}

/* Code that runs no block, beside one. */
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

int main(void)
{
    volatile long numbers[] = {1, 2, 3, 4, 5, 6};
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
