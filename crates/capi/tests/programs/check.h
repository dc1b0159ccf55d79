/* Helpers that the test programs share. */
#include <pmo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, pmo_error_message()); \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

/* A call must fail with a kind of error and these words. */
#define FAILS(call, code, words)                                                                  \
    do {                                                                                          \
        CHECK(call);                                                                              \
        if (pmo_errno() != (code) || !strstr(pmo_error_message(), words)) {                       \
            fprintf(stderr, "%s:%d: %s: error %d, %s\n", __FILE__, __LINE__, #call, pmo_errno(),  \
                    pmo_error_message());                                                         \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
