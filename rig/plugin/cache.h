/* The image of a persistent memory after a power failure that loses its caches. */
#ifndef RIG_CACHE_H
#define RIG_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE 64
#define WORD 8

/* The writer of a store. The kernel's are not torn and not early: its file system, which expects
   whole sectors, is not under test. */
enum owner { PROGRAM, KERNEL };

/* `live` is what the machine sees, `durable` what certainly survives; both have `size` bytes and
   are equal at first. */
void cache_open(const uint8_t *live, uint8_t *durable, size_t size, uint64_t seed);

/* `len` bytes at `offset` were stored. */
void cache_store(size_t offset, size_t len, enum owner owner);
/* They bypassed the caches: durable with the next fence. */
void cache_stream(size_t offset, size_t len, enum owner owner);
/* The line at `offset` is written back: its present bytes are durable with the next fence. */
void cache_write_back(size_t offset, enum owner owner);
/* Lines sent by this owner are durable; true if there are any. An interrupt's fence must not hide a
   missing one of the program. */
bool cache_fence(enum owner owner);

/* Number of lines that may have reached the medium in part. */
size_t cache_undecided(void);
/* Power fails: decides those lines in `durable`. Returns the lines that changed without a reported
   store: an error of the rig. */
size_t cache_cut(void);

#endif
