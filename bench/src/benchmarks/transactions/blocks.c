/* GCC blocks that change one of 4,096 lines: of memory, of an object on demand, of a transactional
   one. Arguments: pool, blocks, turns. Prints nanoseconds per block of each kind and turn, and the
   sums of all words. */
#include <pmo/blocks.h>
#include <pmo/transaction.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINES = 4096, KINDS = 3, DURABLE = 2 };

struct line {
    _Alignas(64) uint64_t word;
};

static struct line memory[LINES];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct line *object(pmo_pool *pool, const char *name, uint32_t durability) {
    struct pmo_create_options options = {.size = sizeof memory, .durability = durability};
    struct line *lines = pmo_create_with(pool, name, &options) ? NULL : pmo_attach_tm(pool, name, NULL, 0);
    if (lines == NULL) {
        fprintf(stderr, "%s\n", pmo_error_message());
        exit(1);
    }
    return lines;
}

static double change(struct line *lines, long rounds) {
    uint64_t random = 0x9e3779b9;
    double begin = now();
    for (long i = 0; i < rounds; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t *word = &lines[random >> 11 & (LINES - 1)].word;
        __transaction_atomic { *word += 1; }
    }
    return (now() - begin) / (double)rounds;
}

static uint64_t sum(struct line *lines) {
    uint64_t sum;
    __transaction_atomic {
        sum = 0;
        for (int i = 0; i < LINES; i++)
            sum += lines[i].word;
    }
    return sum;
}

int main(int count, char **arguments) {
    if (count < 4)
        return 1;
    pmo_pool *pool = pmo_open(arguments[1], 0);
    if (pool == NULL) {
        fprintf(stderr, "%s\n", pmo_error_message());
        return 1;
    }
    long rounds = atol(arguments[2]), turns = atol(arguments[3]);
    struct line *lines[KINDS] = {memory, object(pool, "blocks", PMO_DURABILITY_ON_DEMAND),
                                 object(pool, "durable", PMO_DURABILITY_TRANSACTIONAL)};
    for (long turn = 0; turn < turns; turn++) {
        for (int kind = 0; kind < KINDS; kind++)
            printf("%.1f ", change(lines[kind], kind == DURABLE ? rounds / 100 : rounds));
    }
    for (int kind = 0; kind < KINDS; kind++)
        printf("%lu ", (unsigned long)sum(lines[kind]));
    return pmo_detach(lines[1]) || pmo_detach(lines[2]);
}
