/* What the parts of the counter share, and the part of QEMU's plugin interface that they use. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of qemu-plugin.h, API version 1; the interface is stable within a version. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct { const char *target_name; struct { int min, cur; } version; bool system_emulation;
                 struct { int smp_vcpus, max_vcpus; } system; } qemu_info_t;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0 };
/* Both kinds of access, told apart by qemu_plugin_mem_is_store: version 7.2 takes either kind alone for another one. */
enum { QEMU_PLUGIN_MEM_RW = 3 };
typedef void (*vcpu_udata_cb)(unsigned vcpu, void *udata);
typedef void (*vcpu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned vcpu));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int op, void *ptr, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, vcpu_udata_cb, int flags, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, vcpu_udata_cb, int flags, void *udata);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *ptr, uint64_t imm);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, vcpu_mem_cb, int flags, int rw, void *udata);
void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *, int rw, int op, void *ptr, uint64_t imm);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
const char *qemu_plugin_hwaddr_device_name(const struct qemu_plugin_hwaddr *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

/* A function at which the counter looks: KIND as in counter.c. */
struct function { uint64_t start, end; char kind; };

enum { CPUS_MAX = 64, FRAMES_MAX = 128, NESTED_MAX = 16 };

/* A call under way: where its return address lies, and its place among the chains. */
struct frame { uint64_t slot; uint32_t node; };

/* A system call, by the function that does it. */
enum { SYSTEM_CALLS_MAX = 512 };
struct system_call { uint64_t function, instructions, executed; };
extern struct system_call system_calls[SYSTEM_CALLS_MAX];
extern size_t system_call_count;

/* A task is known by its kernel stack. ENTERING: what it ran in its call before this was known. */
struct task { uint64_t stack, instructions, entering; struct system_call *call; bool calls; int depth;
              struct frame frames[FRAMES_MAX]; };

/* A virtual CPU: what it ran, what of it was accounted to somebody, and for whom it works. Instructions are in halves, so
 * that a repetition of a string instruction that reads and writes takes itself back with each access. */
enum { HALVES = 2 };
struct cpu { uint64_t total, accounted; struct task *task; char nested[NESTED_MAX]; int depth; bool switching;
             uint64_t called_from; struct task unknown; };
extern struct cpu cpus[CPUS_MAX];

/* contexts.c: for whom the kernel works. */
extern uint64_t interrupt_instructions, softirq_instructions;
void contexts_begin(void);
void contexts_sum(uint64_t *of_tasks, uint64_t *of_threads);
void contexts_watch(const struct function *, struct qemu_plugin_tb *);
void contexts_watch_user(struct qemu_plugin_tb *);
/* What ran since the last look was run for whoever was current, at the end of the chain that was current. */
void account(struct cpu *);

/* chains.c: who called whom. */
struct node { uint64_t function, instructions; uint32_t parent, unused; };
extern bool chains_on;
extern struct node *nodes;
extern uint32_t node_count;
void chains_begin(void);
void chains_watch(const struct function *, struct qemu_plugin_tb *);

/* strings.c: string instructions with a prefix to repeat. */
struct string { uint32_t width, accesses; };
struct string string_of(const struct qemu_plugin_insn *);

/* locks.c: instructions that change memory as one step. */
bool is_locked(const struct qemu_plugin_insn *insn);

/* memory.c: accesses, and the misses of a simple cache. */
extern bool memory_on;
extern uint64_t memory_reads, memory_writes, cache_misses;
bool cache_make(uint64_t bytes);
void memory_begin(void);
void memory_watch(struct qemu_plugin_insn *);

/* completion.c: when a drive of QEMU completes. False: this QEMU completes at any time. */
extern bool completion_on;
bool completion_make(void);
void completion_watch(struct qemu_plugin_insn *);

/* waits.c: of a machine with one virtual CPU, until its load begins. */
void waits_make(qemu_plugin_id_t);
void waits_end(void);
void waits_watch(struct qemu_plugin_insn *);

#endif
