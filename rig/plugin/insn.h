/* The x86-64 instructions that decide which bytes survive a power failure. */
#ifndef RIG_INSN_H
#define RIG_INSN_H

#include <stddef.h>
#include <stdint.h>

enum kind {
    PLAIN,       /* anything that may store */
    STREAM,      /* a store around the caches */
    WRITE_BACK,  /* clwb, clflushopt, clflush */
    FENCE,       /* sfence, mfence */
    SPACE,       /* mov cr3: another address space */
    MARK,        /* a no-operation whose displacement carries a number for the rig */
};

/* A memory operand: base + index * scale + displacement. */
struct operand {
    int base;  /* register number, -1: none, -2: address of the next instruction */
    int index; /* -1: none */
    int scale;
    int64_t displacement;
};

struct insn {
    enum kind kind;
    struct operand operand; /* of WRITE_BACK; of SPACE the register, as base; a mark's number is its displacement */
};

/* Marks begin with these bytes of their displacement; the lowest byte is the number. */
#define MARKS 0x52494700

struct insn decode(const uint8_t *bytes, size_t len);

#endif
