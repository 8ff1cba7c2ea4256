/* A kernel that spins at boot takes a tenth of a second to time its APIC's timer (calibrate_APIC_clock, Linux 6.1,
 * arch/x86/kernel/apic/apic.c): tens of millions of instructions, and an exit of QEMU's for each `pause` among them, which
 * was half of a boot. Until a load begins, the machine's clock advances by LEAP_NS with each `pause`: the kernel sees the
 * times that it waits for, and the same rates.
 *
 * The clock's offset is no part of the plugin interface: it is a field of timers_state (softmmu/timers-state.h, QEMU 7.2),
 * which Debian's QEMU exports. It is tried before the machine runs; where it is not the clock's offset, kernels spin. */
#include "counter.h"

#define OF_QEMU __attribute__((weak, visibility("default")))
OF_QEMU extern int64_t timers_state[];
OF_QEMU int64_t icount_get(void);

/* Of a tick of 4 ms a four hundredth. */
enum { LEAP_NS = 10000 };
/* cpu_ticks_prev, cpu_ticks_offset, the lock, two numbers of 16 bits, last_delta, qemu_icount_bias. */
enum { BIAS = 5 };

static bool leaping;

static void leap(unsigned vcpu, void *unused) {
    if (leaping) timers_state[BIAS] += LEAP_NS;
}

/* Called when the virtual CPU is made. */
static void try(qemu_plugin_id_t id, unsigned vcpu) {
    int64_t before = icount_get();
    timers_state[BIAS] += LEAP_NS;
    leaping = icount_get() == before + LEAP_NS;
    timers_state[BIAS] -= LEAP_NS;
}

void waits_make(qemu_plugin_id_t id) {
    if (timers_state && icount_get) qemu_plugin_register_vcpu_init_cb(id, try);
}

void waits_end(void) { leaping = false; }

void waits_watch(struct qemu_plugin_insn *insn) {
    const uint8_t *code = qemu_plugin_insn_data(insn);
    if (leaping && qemu_plugin_insn_size(insn) == 2 && code[0] == 0xf3 && code[1] == 0x90)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, leap, QEMU_PLUGIN_CB_NO_REGS, NULL);
}
