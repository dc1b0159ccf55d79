/* The power supply, as the machine sees it: modem-control lines of its second serial port. QEMU has lines that follow a port of its host,
   which it asks for them whenever the machine reads them, and 100 times a second while the machine wants to be told of changes. The plugin
   answers in the place of that port, for which it is preloaded. */
#ifndef RIG_SUPPLY_H
#define RIG_SUPPLY_H

#include <stdbool.h>
#include <stdint.h>

/* The lines are on or off from now on: bits of TIOCMGET. */
void supply_set(int lines);

/* The power fails when it has been asked for `looks` times from now on: the carrier goes off. Some milliseconds later there is none. 0: it does
   not fail. */
void supply_fail(uint64_t looks, uint64_t milliseconds);
/* Whether it is over. */
bool supply_over(void);
/* Nanoseconds since it failed; 0: it has not. */
uint64_t supply_failed(void);

#endif
