/* String instructions with a prefix to repeat: how many bytes a repetition takes, and how often it accesses memory. */
#include "counter.h"

/* Of any other instruction, a width of 0. */
struct string string_of(const struct qemu_plugin_insn *insn) {
    const uint8_t *code = qemu_plugin_insn_data(insn);
    size_t size = qemu_plugin_insn_size(insn), at = 0;
    bool repeats = false, narrow = false, wide = false;
    for (; at + 1 < size; at++) {
        if (code[at] == 0xf2 || code[at] == 0xf3) repeats = true;
        else if (code[at] == 0x66) narrow = true;
        else if ((code[at] & 0xf8) == 0x48) wide = true;
        else if ((code[at] & 0xf8) != 0x40 && code[at] != 0x67) break;
    }
    if (!repeats || at + 1 != size) return (struct string){0, 0};
    uint32_t width = !(code[at] & 1) ? 1 : wide ? 8 : narrow ? 2 : 4;
    switch (code[at] & 0xfe) {
    case 0xa4: case 0xa6: return (struct string){width, 2}; /* movs, cmps */
    case 0xaa: case 0xac: case 0xae: return (struct string){width, 1}; /* stos, lods, scas */
    }
    return (struct string){0, 0};
}
