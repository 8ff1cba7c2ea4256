/* When a drive of QEMU completes: at a time of the machine's own clock.
 *
 * QEMU 7.2 serves a doorbell in several steps, bottom halves of its main loop, which is another thread. How far the guest
 * has come meanwhile depends on this machine; and if the guest idles, the clock jumps to its next timer between the steps,
 * which is about a tick for each I/O. So the steps are done here, before the instruction after the one that rang, and the
 * interrupt comes DELAY_NS later.
 *
 * The functions of QEMU below are no part of its plugin interface. Debian's QEMU 7.2 exports them for its own modules; one
 * that does not completes at any time. */
#include "counter.h"
#include <string.h>

#define OF_QEMU __attribute__((weak, visibility("default")))
OF_QEMU void *qemu_get_aio_context(void);
OF_QEMU void *iohandler_get_aio_context(void);
OF_QEMU bool aio_poll(void *context, bool blocking);
OF_QEMU void bdrv_drain_all(void);
OF_QEMU bool qemu_mutex_iothread_locked(void);
OF_QEMU void qemu_mutex_lock_iothread_impl(const char *file, int line);
OF_QEMU void qemu_mutex_unlock_iothread(void);
OF_QEMU void *qemu_get_cpu(int index);
OF_QEMU void cpu_interrupt(void *cpu, int mask);
OF_QEMU void cpu_reset_interrupt(void *cpu, int mask);
OF_QEMU int64_t qemu_clock_get_ns(int clock);
OF_QEMU void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, void (*)(void *), void *);
OF_QEMU void timer_mod_ns(void *timer, int64_t expires);
OF_QEMU bool timer_pending(void *timer);
/* Of include/qemu/timer.h; a timer has 56 bytes there. */
enum { CLOCK_VIRTUAL = 1, SCALE_NS = 1, TIMER_BYTES = 256 };
/* Of target/i386/cpu.h: an interrupt, and the question to the APIC whether there is one. */
enum { INTERRUPT_HARD = 0x02, INTERRUPT_POLL = 0x10 };

/* As null_blk's completion_nsec. */
enum { DELAY_NS = 10000 };
/* A handler that is always ready must not hold the machine up. */
enum { TURNS_MAX = 100000 };

bool completion_on;
static _Alignas(16) char timer[TIMER_BYTES];
static bool timer_made;

bool completion_make(void) {
    return completion_on = qemu_get_aio_context && iohandler_get_aio_context && aio_poll && bdrv_drain_all &&
           qemu_mutex_iothread_locked && qemu_mutex_lock_iothread_impl && qemu_mutex_unlock_iothread && qemu_get_cpu &&
           cpu_interrupt && cpu_reset_interrupt && qemu_clock_get_ns && timer_init_full && timer_mod_ns && timer_pending;
}

/* NVMe's doorbells lie in pairs, of a submission and a completion queue. */
enum bell { NO_BELL, SUBMISSION, COMPLETION };
static enum bell bell_at(const struct qemu_plugin_hwaddr *address, uint64_t vaddr) {
    const char *name = address && qemu_plugin_hwaddr_is_io(address) ? qemu_plugin_hwaddr_device_name(address) : NULL;
    if (!name) return NO_BELL;
    if (!strncmp(name, "nvme", 4)) return vaddr & 4 ? COMPLETION : SUBMISSION;
    return strncmp(name, "virtio-pci-notify", 17) ? NO_BELL : SUBMISSION;
}

static bool poll_all(void) {
    int turns = 0;
    while (turns < TURNS_MAX &&
           (aio_poll(iohandler_get_aio_context(), false) | aio_poll(qemu_get_aio_context(), false)))
        turns++;
    return turns > 0 && turns < TURNS_MAX;
}

/* The steps that the main loop has not done yet, and an image's I/O. */
static void serve(void) {
    poll_all();
    do bdrv_drain_all(); while (poll_all());
}

static void interrupts(void *cpu) { cpu_interrupt(cpu, INTERRUPT_POLL); }

/* Any interrupt waits: which ones there are, the APIC knows. */
static void delay_interrupt(void) {
    void *cpu = qemu_get_cpu(0);
    cpu_reset_interrupt(cpu, INTERRUPT_HARD | INTERRUPT_POLL);
    if (!timer_made) timer_init_full(timer, NULL, CLOCK_VIRTUAL, SCALE_NS, 0, interrupts, cpu);
    timer_made = true;
    if (!timer_pending(timer)) timer_mod_ns(timer, qemu_clock_get_ns(CLOCK_VIRTUAL) + DELAY_NS);
}

static void stored(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    if (!qemu_plugin_mem_is_store(info)) return;
    enum bell bell = bell_at(qemu_plugin_get_hwaddr(info, vaddr), vaddr);
    if (!bell) return;
    bool was_locked = qemu_mutex_iothread_locked();
    if (!was_locked) qemu_mutex_lock_iothread_impl(__FILE__, __LINE__);
    serve();
    if (bell == SUBMISSION) delay_interrupt();
    if (!was_locked) qemu_mutex_unlock_iothread();
}

/* `mov %reg, (memory)` of 16 or 32 bits, which writew() and writel() are (build_mmio_write, arch/x86/include/asm/io.h). */
static bool may_ring(const struct qemu_plugin_insn *insn) {
    const uint8_t *code = qemu_plugin_insn_data(insn);
    if (*code == 0x66) code++;
    if ((*code & 0xf8) == 0x40) code++;
    return *code == 0x89 && code[1] >> 6 != 3;
}

void completion_watch(struct qemu_plugin_insn *insn) {
    if (may_ring(insn))
        qemu_plugin_register_vcpu_mem_cb(insn, stored, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}
