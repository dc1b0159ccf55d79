/* Refuses an object with function addresses of another program, or of this one loaded elsewhere:
 * same-program POOL. */
#define _GNU_SOURCE
#include <pmo/same_program.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    pmo_pool *pool = argc > 1 ? pmo_open_or_format(argv[1], 16 << 20, 0) : NULL;
    struct pmo_stat stat;
    if (pool == NULL || (pmo_stat(pool, "object", &stat) != 0 && pmo_create(pool, "object", 1 << 20) != 0))
        return 1;
    void *object = pmo_attach(pool, "object", PMO_WRITE, NULL, 0);
    if (object == NULL || pmo_heap_open_or_format(object, 0) != 0)
        return 1;
    const char *refused = pmo_refuse_another_program(object);
    printf("%s\n", refused != NULL ? refused : "the same");
    return pmo_psync(object) == 0 && pmo_detach(object) == 0 ? 0 : 1;
}
