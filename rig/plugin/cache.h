/* The image of a persistent memory after a power failure, whose caches are lost. */
#ifndef RIG_CACHE_H
#define RIG_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE 64
#define WORD 8

/* The writer of a store. The kernel's are not torn and not early: what is tested is not its file system, which
   expects a block device to write whole sectors. */
enum owner { PROGRAM, KERNEL };

/* `live` is what the machine sees, `durable` what a power failure leaves for certain; both of `size` bytes
   and equal at first. */
void cache_open(const uint8_t *live, uint8_t *durable, size_t size, uint64_t seed);

/* `len` bytes at `offset` were stored. */
void cache_store(size_t offset, size_t len, enum owner owner);
/* They were stored around the caches: durable with the next fence. */
void cache_stream(size_t offset, size_t len, enum owner owner);
/* The line at `offset` is written back: as it is now, durable with the next fence. */
void cache_write_back(size_t offset, enum owner owner);
/* Lines that the same owner sent before are durable; true if there are any. An interrupt that fences by chance would
   hide that the program does not. */
bool cache_fence(enum owner owner);

/* Lines of which more or less may have reached the medium. */
size_t cache_undecided(void);
/* Power fails: decides about those lines in `durable`. Returns the lines that changed without a store that
   was told of, which is an error of the rig. */
size_t cache_cut(void);

#endif
