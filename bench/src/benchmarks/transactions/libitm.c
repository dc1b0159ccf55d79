/* The loads of `loads.rs` with GCC's transactions. Arguments: load, threads, transactions per
   thread, lines. Prints nanoseconds from the first start to the last end, and the sum of all words.
   */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHANGE, MOVE, READ, MIX };

struct line {
    _Alignas(64) uint64_t word;
};

struct span {
    double from, to;
};

static struct line *lines;
/* Number of the last line; the number of lines is a power of two. */
static uint64_t last;
static int load, rounds, threads;
static pthread_barrier_t ready;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline uint64_t next(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random >> 11;
}

static inline uint64_t further(uint64_t at) {
    return (at * UINT64_C(25214903917) + 11) >> 3;
}

static uint64_t change(uint64_t seed) {
    uint64_t *one = &lines[seed & last].word;
    __transaction_atomic { *one += 1; }
    return 0;
}

static uint64_t move(uint64_t seed) {
    uint64_t *one = &lines[seed & last].word, *other = &lines[(seed >> 16) & last].word;
    __transaction_atomic {
        *one -= 1;
        *other += 1;
    }
    return 0;
}

static uint64_t read_many(uint64_t seed) {
    uint64_t sum;
    __transaction_atomic {
        uint64_t at = seed;
        sum = 0;
        for (int i = 0; i < 64; i++) {
            sum += lines[at & last].word;
            at = further(at);
        }
    }
    return sum;
}

static uint64_t mix(uint64_t seed) {
    uint64_t sum;
    __transaction_atomic {
        uint64_t at = seed;
        sum = 0;
        for (int i = 0; i < 32; i++) {
            uint64_t *word = &lines[at & last].word;
            sum += *word;
            if (i % 4 == 3)
                *word += 1;
            at = further(at);
        }
    }
    return sum;
}

static void *work(void *argument) {
    struct span *span = argument;
    uint64_t random = UINT64_C(0x9e3779b9) + (uint64_t)span->from;
    volatile uint64_t sum = 0;
    pthread_barrier_wait(&ready);
    span->from = now();
    for (int i = 0; i < rounds; i++) {
        uint64_t seed = next(&random);
        switch (load) {
        case CHANGE: sum += change(seed); break;
        case MOVE: sum += move(seed); break;
        case READ: sum += read_many(seed); break;
        default: sum += mix(seed); break;
        }
    }
    span->to = now();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    load = atoi(argv[1]), threads = atoi(argv[2]), rounds = atoi(argv[3]), last = strtoull(argv[4], NULL, 10) - 1;
    lines = aligned_alloc(64, (last + 1) * sizeof *lines);
    struct span *spans = calloc((size_t)threads, sizeof *spans);
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    if (!lines || !spans || !all || pthread_barrier_init(&ready, NULL, (unsigned)threads))
        return 1;
    for (uint64_t i = 0; i <= last; i++)
        lines[i].word = 1000;
    for (int i = 0; i < threads; i++) {
        spans[i].from = i;
        if (pthread_create(&all[i], NULL, work, &spans[i]))
            return 1;
    }
    double from = 0, to = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        from = i == 0 || spans[i].from < from ? spans[i].from : from;
        to = spans[i].to > to ? spans[i].to : to;
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= last; i++)
        sum += lines[i].word;
    printf("%.0f %llu\n", to - from, (unsigned long long)sum);
    return 0;
}
