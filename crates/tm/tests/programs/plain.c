/* Blocks with plain accesses: functions unknown to GCC, and loops that it turns into libc calls at
   -O2. Stores are in place until the block is undone. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

extern void _ITM_LU8(const long *) __attribute__((transaction_pure));

/* Visible outside, so that the compiler does not know them. */
int always = 1;
long x, length, numbers[64];

/* Logs its own frame, as GCC's code does, far below the undoing frames. */
__attribute__((transaction_pure, noinline)) long deep(long n)
{
    long a[200], sum = 0;
    for (long i = 0; i < 200; i++) {
        _ITM_LU8(&a[i]);
        ((volatile long *)a)[i] = n + i;
    }
    for (long i = 0; i < 200; i++)
        sum += ((volatile long *)a)[i];
    return sum;
}

static void dead_frames(void)
{
    for (int again = 0; again < 3; again++)
        __transaction_atomic
        {
            x = deep(always);
            if (always)
                __transaction_cancel;
        }
    printf("dead frames: %ld\n", x);
}

__attribute__((transaction_safe, noinline)) static void fill(long v)
{
    for (long i = 0; i < 64; i += 3)
        numbers[i] = v + i;
}

/* A plain memset at -O2. */
__attribute__((transaction_safe, noinline)) static void clear(long *p, long n)
{
    for (long i = 0; i < n; i++)
        p[i] = 0;
}

static void cleared(void)
{
    __transaction_atomic
    {
        fill(always + 4);
        clear(numbers, always + 62);
    }
    long sum = 0;
    for (int i = 0; i < 63; i++)
        sum += numbers[i];
    printf("cleared: %ld %ld\n", sum, numbers[63]);
}

__attribute__((transaction_pure, noinline)) static int print(char *to, size_t n, long v)
{
    return snprintf(to, n, "%ld", v);
}

__attribute__((transaction_safe, noinline)) static size_t measure(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

/* Ends with a plain memset at -O2. */
__attribute__((transaction_safe, noinline)) static void copy(char *to, const char *from, size_t n)
{
    do {
        if ((*to++ = *from++) == 0) {
            while (--n)
                *to++ = 0;
            break;
        }
    } while (--n);
}

__attribute__((transaction_safe, noinline)) static void put(char *to, long v)
{
    char room[24];
    print(room, sizeof room, v);
    copy(to, room, sizeof room);
}

__attribute__((noinline)) static void own_bytes(char *room, long v)
{
    __transaction_atomic
    {
        put(room, v);
        length = measure(room);
    }
}

/* Read by a function that GCC does not know. */
__attribute__((transaction_pure, noinline)) static long look(const long *at)
{
    return *(volatile const long *)at;
}

__attribute__((transaction_pure, noinline)) static void put_plainly(long *at, long v)
{
    *(volatile long *)at = v;
}

/* A word that the block logs after it has stored to it is as before the block. */
static void logged_late(void)
{
    x = 1;
    __transaction_atomic
    {
        x = 2;
        _ITM_LU8(&x);
        put_plainly(&x, 3);
        if (always)
            __transaction_cancel;
    }
    printf("logged late: %ld", x);
    __transaction_atomic
    {
        x = 5;
        __transaction_atomic
        {
            x = 6;
            _ITM_LU8(&x);
            length = look(&x);
            if (always)
                __transaction_cancel;
        }
        x += 10;
    }
    printf(" %ld\n", x);
}

static struct {
    long one __attribute__((aligned(64)));
    long other __attribute__((aligned(64)));
} pair;

/* Changes both words, and takes back every other change after other threads may have read it. */
static void *change(void *unused)
{
    for (long i = 1; i <= 20000; i++)
        __transaction_atomic
        {
            pair.one += i & 1 ? 1 : 1000000;
            pair.other += i & 1 ? 1 : 1000000;
            if (!(i & 1))
                __transaction_cancel;
        }
    return unused;
}

static void undone(void)
{
    pthread_t threads[3];
    long wrong = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, change, NULL);
    for (long i = 0; i < 20000; i++) {
        long one, other;
        __transaction_atomic
        {
            one = pair.one;
            other = pair.other;
        }
        wrong += one != other || one > 30000;
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("undone: %ld seen, %ld %ld\n", wrong, pair.one, pair.other);
}

/* A thread ends in a block, whose stores to dead frames are not undone into the stack's next use.
   */
__attribute__((transaction_pure, noinline)) static void leave(void)
{
    pthread_exit(NULL);
}

__attribute__((noinline)) static void to_frame(char *room)
{
    __transaction_atomic
    {
        put(room, 12345);
        x = 77;
        leave();
    }
}

static void *end(void *unused)
{
    char room[4096];
    for (int i = 0; i < 4096 - 24; i++)
        room[i] = 1;
    to_frame(room + 4000);
    return unused;
}

int main(int argc, char **argv)
{
    char room[24] = {0};
    dead_frames();
    cleared();
    own_bytes(room, always + 9);
    printf("own bytes: %s has %ld\n", room, length);
    logged_late();
    undone();
    if (argc > 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, end, NULL);
        pthread_join(thread, NULL);
        printf("%s: %ld\n", argv[1], x);
    }
    return 0;
}
