/* Loads and stores of every size, kind and alignment, copies, cancels, conflicts: the output is the
   same on any run-time library. */
#include <complex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int v4 __attribute__((vector_size(16)));
typedef int v8 __attribute__((vector_size(32)));
typedef short v4h __attribute__((vector_size(8)));

struct all {
    uint8_t u1;
    uint16_t u2;
    uint32_t u4;
    uint64_t u8;
    float f;
    double d;
    long double e;
    float complex cf;
    double complex cd;
    long double complex ce;
    v4 m128;
    v4h m64;
    char bytes[1000];
} a, b;

struct __attribute__((packed)) odd {
    char c;
    uint16_t u2;
    uint32_t u4;
    uint64_t u8;
    float f;
    double d;
    char end;
} odd;

static void show(const char *what, const struct all *x)
{
    printf("%s: %u %u %u %lu %g %g %Lg %g%+gi %g%+gi %Lg%+Lgi %d,%d,%d,%d %d,%d,%d,%d\n", what, x->u1, x->u2, x->u4, (unsigned long)x->u8, (double)x->f,
           x->d, x->e, (double)crealf(x->cf), (double)cimagf(x->cf), creal(x->cd), cimag(x->cd), creall(x->ce), cimagl(x->ce), x->m128[0],
           x->m128[1], x->m128[2], x->m128[3], x->m64[0], x->m64[1], x->m64[2], x->m64[3]);
}

__attribute__((transaction_safe, noinline)) void change(struct all *x, int by)
{
    x->u1 += by;
    x->u2 += by;
    x->u4 += by;
    x->u8 += by;
    x->f += by;
    x->d += by;
    x->e += by;
    x->cf += by;
    x->cd *= by;
    x->ce += by + 1.0iL;
    x->m128 += by;
    x->m64 += (short)by;
}

static int cancelled(void)
{
    int local = 1, done = 0;
    __transaction_atomic
    {
        change(&a, 100);
        local = 2;
        if (a.u1 > 0) {
            memset(a.bytes, 'x', 500);
            __transaction_cancel;
        }
        done = 1;
    }
    return 10 * local + done;
}

static int nested(int inner)
{
    int outcome = 0;
    int on_stack[8] = {1, 2, 3};
    __transaction_atomic
    {
        a.u4 += 1000;
        outcome = 1;
        __transaction_atomic
        {
            a.u4 += 5;
            a.u2 += 1;
            on_stack[1] = inner + 40;
            outcome = 2;
            char *gone = malloc(100);
            gone[3] = (char)a.u4;
            if (inner)
                __transaction_cancel;
            free(gone);
        }
        a.u8 += 7;
    }
    return outcome * 100 + on_stack[1];
}

__attribute__((transaction_safe, noinline)) static int recursive(int n)
{
    int values[10];
    for (int i = 0; i < 10; i++)
        values[i] = n + i;
    a.u4 += (unsigned)values[n % 10];
    return n == 0 ? (int)a.u4 : recursive(n - 1) + values[3];
}

__attribute__((transaction_pure)) static int pure(int n)
{
    return n + 1;
}

__attribute__((transaction_safe, noinline)) static void put(int *at, int value)
{
    *at = value;
}

/* Its frame is made in the outer block, and its inner block may be cancelled. */
__attribute__((transaction_safe, noinline)) static int frame_inside(int cancels)
{
    int values[4] = {1, 2, 3, 4};
    put(&values[1], 5);
    __transaction_atomic
    {
        put(&values[1], 50);
        put(&values[2], 60);
        if (cancels)
            __transaction_cancel;
    }
    return values[1] * 100 + values[2];
}

static int (*volatile chosen)(int) __attribute__((transaction_safe)) = recursive;

enum { THREADS = 4, ROUNDS = 20000 };
static struct { long value; char padding[56]; } counters[4];
static long *list;

static void *work(void *context)
{
    unsigned seed = 1 + (unsigned)(uintptr_t)context;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned from = seed >> 16 & 3, to = seed >> 20 & 3;
        __transaction_atomic
        {
            counters[from].value--;
            counters[to].value++;
        }
        if (i % 100 == 0) {
            /* A removed node, with its memory, is the thread's own. */
            long *mine = NULL;
            __transaction_atomic
            {
                mine = list;
                list = NULL;
            }
            if (mine != NULL) {
                *mine += 1;
            } else {
                mine = calloc(4, sizeof *mine);
                mine[1] = 1;
            }
            __transaction_atomic
            {
                if (list != NULL) {
                    *list += *mine;
                    list[1] += mine[1];
                    free(mine);
                } else {
                    list = mine;
                }
            }
        }
    }
    return NULL;
}

/* Neighbours in one word: of one thread's blocks, and of another thread without any. */
static struct {
    volatile unsigned short plain;
    unsigned short shared;
} neighbours;

static volatile int blocks_are_over;
static unsigned lost;

static void *plainly(void *context)
{
    (void)context;
    for (unsigned short n = 0; !blocks_are_over; n++) {
        neighbours.plain = n;
        for (int i = 0; i < 20; i++)
            lost += neighbours.plain != n;
    }
    return NULL;
}

static void *in_blocks(void *context)
{
    (void)context;
    for (int i = 0; i < 3000000; i++) {
        __transaction_atomic
        {
            neighbours.shared++;
        }
    }
    blocks_are_over = 1;
    return NULL;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        /* libitm ends the program here. */
        int frames[2] = {0, 0};
        __transaction_atomic
        {
            put(&frames[0], frame_inside(0));
            put(&frames[1], frame_inside(1));
        }
        printf("%s: %d %d\n", arguments[1], frames[0], frames[1]);
        return 0;
    }
    __transaction_atomic
    {
        change(&a, 3);
    }
    show("changed", &a);
    printf("cancelled %d\n", cancelled());
    show("as before", &a);
    __transaction_atomic
    {
        b = a;
        change(&b, 2);
        memmove(b.bytes + 3, "some bytes that are moved", 25);
        memmove(b.bytes + 10, b.bytes + 3, 300);
        memmove(b.bytes, b.bytes + 5, 300);
        memcpy(a.bytes, b.bytes, 1000);
        memset(b.bytes + 400, 'z', 3);
    }
    show("copied", &b);
    printf("%s|%s|%s\n", b.bytes, a.bytes, b.bytes + 400);
    printf("nested %d", nested(0));
    printf(" %d\n", nested(1));
    show("after cancels of inner blocks", &a);
    a.u4 = 2000;
    int total = 0;
    __transaction_atomic
    {
        total = chosen(30) + pure(3);
        odd.c = 1, odd.u2 = 0xABCD, odd.u4 = 0x12345678, odd.u8 = 0x1122334455667788, odd.f = 1.5f, odd.d = 2.5, odd.end = 9;
        odd.u8 += odd.u2;
    }
    printf("%d %d %x %x %lx %g %g %d\n", total, odd.c, odd.u2, odd.u4, (unsigned long)odd.u8, (double)odd.f, odd.d, odd.end);
    __transaction_relaxed
    {
        a.u4 = 77;
        printf("irrevocable %u\n", a.u4);
        a.u4 += 1;
    }
    __transaction_atomic
    {
        a.u4 += 1;
    }
    printf("%u\n", a.u4);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long sum = 0;
    for (int i = 0; i < 4; i++)
        sum += counters[i].value;
    printf("sum %ld, list %s\n", sum, list != NULL && list[1] > 0 ? "there" : "gone");
    pthread_create(&threads[0], NULL, plainly, NULL);
    pthread_create(&threads[1], NULL, in_blocks, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("neighbours: %u lost, %u\n", lost, neighbours.shared);
    return 0;
}
