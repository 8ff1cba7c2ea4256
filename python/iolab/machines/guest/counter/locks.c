/* Locked instructions: those that change memory as one step for all CPUs.
 *
 * A kernel that finds a single CPU writes the prefix 0x3e over each lock prefix (arch/x86/kernel/alternative.c of Linux
 * 6.1, alternatives_smp_unlock). The prefix has no other meaning for an instruction that may be locked, so it counts. */
#include "counter.h"

enum { LOCK = 0xf0, WAS_LOCK = 0x3e };

static bool is_other_prefix(uint8_t byte) {
    switch (byte) {
    case 0x66: case 0x67: case 0xf2: case 0xf3: case 0x2e: case 0x36: case 0x26: case 0x64: case 0x65: return true;
    }
    return false;
}

/* Whether the processor takes a lock prefix before it; `reg`: the three bits of the second operand. */
static bool may_be_locked(uint8_t code, unsigned reg) {
    if (code < 0x38) return (code & 7) < 2; /* add, or, adc, sbb, and, sub, xor to memory */
    switch (code) {
    case 0x80: case 0x81: case 0x83: return reg != 7;
    case 0xf6: case 0xf7: return reg == 2 || reg == 3; /* not, neg */
    case 0xfe: case 0xff: return reg < 2;              /* inc, dec */
    }
    return false;
}

/* The same of those whose code follows 0x0f. */
static bool may_be_locked_too(uint8_t code, unsigned reg) {
    switch (code) {
    case 0xb0: case 0xb1: case 0xc0: case 0xc1: case 0xab: case 0xb3: case 0xbb: return true; /* cmpxchg, xadd, bts ... */
    case 0xba: return reg > 4;
    case 0xc7: return reg == 1; /* cmpxchg8b, cmpxchg16b */
    }
    return false;
}

bool is_locked(const struct qemu_plugin_insn *insn) {
    const uint8_t *code = qemu_plugin_insn_data(insn);
    size_t size = qemu_plugin_insn_size(insn), at = 0;
    bool has_prefix = false;
    for (; at < size; at++) {
        if (code[at] == LOCK || code[at] == WAS_LOCK) has_prefix = true;
        else if (!is_other_prefix(code[at])) break;
    }
    if (at < size && (code[at] & 0xf0) == 0x40) at++; /* REX */
    bool is_long = at < size && code[at] == 0x0f;
    at += is_long;
    if (at + 1 >= size) return false;
    uint8_t operands = code[at + 1];
    if (operands >> 6 == 3) return false; /* both are registers */
    if (!is_long && (code[at] & 0xfe) == 0x86) return true; /* xchg locks memory whatever its prefixes */
    unsigned reg = operands >> 3 & 7;
    return has_prefix && (is_long ? may_be_locked_too(code[at], reg) : may_be_locked(code[at], reg));
}
