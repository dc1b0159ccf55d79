#include "insn.h"

#include <string.h>

static int64_t number(const uint8_t *at, int bytes)
{
    int32_t wide;
    if (bytes == 1) return (int8_t)*at;
    memcpy(&wide, at, 4);
    return wide;
}

/* The memory operand with its ModRM byte at `at`. */
static struct operand operand(const uint8_t *at, const uint8_t *end, int rex)
{
    struct operand out = {.base = -1, .index = -1, .scale = 1};
    int mode = at[0] >> 6, low = at[0] & 7;
    at++;
    out.base = low | (rex & 1) << 3;
    if (low == 4 && at < end) {
        int sib = *at++;
        int index = (sib >> 3 & 7) | (rex & 2) << 2;
        out.base = (sib & 7) | (rex & 1) << 3;
        if (index != 4) out.index = index;
        out.scale = 1 << (sib >> 6);
        if (mode == 0 && (sib & 7) == 5) {
            out.base = -1;
            mode = 2;
        }
    } else if (mode == 0 && low == 5) {
        out.base = -2;
        mode = 2;
    }
    int bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    if (bytes && at + bytes <= end) out.displacement = number(at, bytes);
    return out;
}

/* Decodes the byte after 0f; `wide`: prefix 66. */
static struct insn two_bytes(const uint8_t *at, const uint8_t *end, int wide, int rex)
{
    struct insn out = {.kind = PLAIN};
    if (at + 2 > end) return out;
    int memory = at[1] >> 6 != 3, field = at[1] >> 3 & 7;
    switch (at[0]) {
    case 0xae:
        if (memory && (field == 7 || (field == 6 && wide))) {
            out.kind = WRITE_BACK;
            out.operand = operand(at + 1, end, rex);
        } else if (!memory && (field == 6 || field == 7) && !wide) {
            out.kind = FENCE;
        }
        break;
    case 0x22:
        if (field == 3) {
            out.kind = SPACE;
            out.operand = (struct operand){.base = (at[1] & 7) | (rex & 1) << 3, .index = -1, .scale = 1};
        }
        break;
    case 0x1f:
        out.operand = operand(at + 1, end, rex);
        if (memory && (out.operand.displacement & ~0xff) == MARKS) out.kind = MARK;
        break;
    case 0x2b: /* movntps, movntpd */
    case 0xc3: /* movnti */
    case 0xe7: /* movntdq, movntq */
        if (memory) out.kind = STREAM;
        break;
    }
    return out;
}

struct insn decode(const uint8_t *at, size_t len)
{
    const uint8_t *end = at + len;
    struct insn plain = {.kind = PLAIN};
    int wide = 0, repeated = 0, rex = 0;
    for (; at < end; at++) {
        if (*at == 0x66) wide = 1;
        else if (*at == 0xf2 || *at == 0xf3) repeated = 1;
        else if (*at != 0x2e && *at != 0x36 && *at != 0x3e && *at != 0x26 && *at != 0x64 && *at != 0x65 && *at != 0x67) break;
    }
    if (at < end && (*at & 0xf0) == 0x40) rex = *at++;
    if (at + 2 < end && at[0] == 0x0f && !repeated) return two_bytes(at + 1, end, wide, rex);
    /* Vector prefixes: only streaming stores of the map 0f count. */
    int opcode = -1;
    if (at + 3 < end && at[0] == 0xc5) opcode = at[2];
    else if (at + 4 < end && at[0] == 0xc4 && (at[1] & 0x1f) == 1) opcode = at[3];
    else if (at + 5 < end && at[0] == 0x62 && (at[1] & 7) == 1) opcode = at[4];
    if (opcode == 0xe7 || opcode == 0x2b) plain.kind = STREAM;
    return plain;
}
