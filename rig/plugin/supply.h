/* The power supply: modem-control lines of the machine's second serial port. QEMU asks a host port
   for its lines whenever the machine reads them, and 100 times a second while the machine waits for
   changes. The preloaded plugin answers in place of that port. */
#ifndef RIG_SUPPLY_H
#define RIG_SUPPLY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the lines: bits of TIOCMGET. */
void supply_set(int lines);

/* After `looks` more looks the power fails: the carrier goes off, and the power `milliseconds`
   later. 0: never. */
void supply_fail(uint64_t looks, uint64_t milliseconds);
/* Whether the power is gone. */
bool supply_over(void);
/* Nanoseconds since the failure; 0: none yet. */
uint64_t supply_failed(void);

#endif
