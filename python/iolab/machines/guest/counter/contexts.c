/* For whom the kernel works: a task that makes system calls, a kernel thread, an interrupt, a soft interrupt; and of a
 * task's own, for which system call: from its entry to the next instruction in user mode. */
#include "counter.h"
#include <string.h>

enum { THREAD_BYTES = 16384, STACKS = 4096 };

struct cpu cpus[CPUS_MAX];
static struct task tasks[STACKS];
uint64_t interrupt_instructions, softirq_instructions;
struct system_call system_calls[SYSTEM_CALLS_MAX];
size_t system_call_count = 1; /* The first: a call that is not known yet. */

static struct cpu *cpu_of(unsigned vcpu) {
    struct cpu *cpu = &cpus[vcpu % CPUS_MAX];
    if (!cpu->task) cpu->task = &cpu->unknown;
    return cpu;
}

void account(struct cpu *cpu) {
    uint64_t ran = cpu->total - cpu->accounted;
    cpu->accounted = cpu->total;
    struct task *task = cpu->task;
    if (cpu->depth == 0) {
        task->instructions += ran;
        if (task->call && task->call != system_calls) task->call->instructions += ran;
        else if (task->call) task->entering += ran;
    }
    else if (cpu->nested[cpu->depth - 1] == 's') softirq_instructions += ran;
    else interrupt_instructions += ran;
    if (chains_on) nodes[task->depth ? task->frames[task->depth - 1].node : 0].instructions += ran;
}

static void entered(unsigned vcpu, void *kind) {
    struct cpu *cpu = cpu_of(vcpu);
    account(cpu);
    if (cpu->depth < NESTED_MAX) cpu->nested[cpu->depth++] = *(const char *)kind;
}

static void left(unsigned vcpu, void *unused) {
    struct cpu *cpu = cpu_of(vcpu);
    account(cpu);
    if (cpu->depth > 0) cpu->depth--;
}

static void called(unsigned vcpu, void *unused) {
    struct cpu *cpu = cpu_of(vcpu);
    account(cpu);
    cpu->task->calls = true;
    cpu->task->call = system_calls;
    cpu->task->entering = 0;
}

static void does(unsigned vcpu, void *call) {
    struct task *task = cpu_of(vcpu)->task;
    if (task->call != system_calls) return;
    account(&cpus[vcpu % CPUS_MAX]);
    task->call = call;
    task->call->executed++;
    task->call->instructions += task->entering;
}

static void returned(unsigned vcpu, void *unused) {
    struct cpu *cpu = cpu_of(vcpu);
    if (!cpu->task->call) return;
    account(cpu);
    cpu->task->call = NULL;
}

void contexts_watch_user(struct qemu_plugin_tb *tb) {
    qemu_plugin_register_vcpu_tb_exec_cb(tb, returned, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static struct system_call *call_of(uint64_t function) {
    size_t at = 1;
    while (at < system_call_count && system_calls[at].function != function) at++;
    if (at == SYSTEM_CALLS_MAX) return NULL;
    if (at == system_call_count) system_calls[system_call_count++].function = function;
    return &system_calls[at];
}

static void switches(unsigned vcpu, void *unused) { cpu_of(vcpu)->switching = true; }
static void switched_over(unsigned vcpu, void *unused) { cpu_of(vcpu)->switching = false; }

/* The switch saves registers on the old stack and takes them from the new one: its last access tells the new task. QEMU
 * 7.2 also reports accesses of helpers that run later, such as an interrupt's reads of the IDT and a cmpxchg16b, which are
 * no switch (fixed in 8.0: "plugin: fix clearing of plugin_mem_cbs before TB exit"). */
static void switched(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    struct cpu *cpu = cpu_of(vcpu);
    uint64_t stack = vaddr / THREAD_BYTES;
    if (!cpu->switching || vaddr >> 63 == 0 || stack == cpu->task->stack) return;
    size_t at = (stack ^ stack >> 12) % STACKS;
    for (size_t tried = 0; tasks[at].stack && tasks[at].stack != stack; at = (at + 1) % STACKS)
        if (++tried == STACKS) return;
    account(cpu);
    cpu->depth = 0;
    tasks[at].stack = stack;
    cpu->task = &tasks[at];
}

void contexts_begin(void) {
    for (size_t i = 0; i < STACKS; i++) tasks[i].instructions = 0;
    for (size_t i = 0; i < CPUS_MAX; i++) cpus[i].total = cpus[i].accounted = cpus[i].unknown.instructions = 0;
    for (size_t i = 0; i < system_call_count; i++) system_calls[i].instructions = system_calls[i].executed = 0;
    interrupt_instructions = softirq_instructions = 0;
}

void contexts_sum(uint64_t *of_tasks, uint64_t *of_threads) {
    for (unsigned i = 0; i < CPUS_MAX; i++) {
        account(cpu_of(i));
        *(cpus[i].unknown.calls ? of_tasks : of_threads) += cpus[i].unknown.instructions;
    }
    for (size_t i = 0; i < STACKS; i++) *(tasks[i].calls ? of_tasks : of_threads) += tasks[i].instructions;
}

/* `ret`, or a jump out of the function: to the return thunk, or a last call. */
static bool leaves(const struct function *f, const struct qemu_plugin_insn *insn) {
    const uint8_t *code = qemu_plugin_insn_data(insn);
    size_t size = qemu_plugin_insn_size(insn);
    if (code[0] == 0xc3) return true;
    if (code[0] != 0xe9 || size != 5) return false;
    int32_t by;
    memcpy(&by, code + 1, sizeof by);
    uint64_t target = qemu_plugin_insn_vaddr(insn) + size + (int64_t)by;
    return target < f->start || target >= f->end;
}

void contexts_watch(const struct function *f, struct qemu_plugin_tb *tb) {
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    bool begins = qemu_plugin_tb_vaddr(tb) == f->start;
    struct system_call *call = f->kind == 'y' && begins ? call_of(f->start) : NULL;
    if (call) qemu_plugin_register_vcpu_tb_exec_cb(tb, does, QEMU_PLUGIN_CB_NO_REGS, call);
    if (f->kind == 'c' && begins) qemu_plugin_register_vcpu_tb_exec_cb(tb, called, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (f->kind == 'i' || f->kind == 's') {
        if (begins) qemu_plugin_register_vcpu_tb_exec_cb(tb, entered, QEMU_PLUGIN_CB_NO_REGS, (void *)&f->kind);
        if (leaves(f, last)) qemu_plugin_register_vcpu_insn_exec_cb(last, left, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    if (f->kind == 'w') {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, switches, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (leaves(f, last)) qemu_plugin_register_vcpu_insn_exec_cb(last, switched_over, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    for (size_t i = 0; f->kind == 'w' && i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), switched, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
}
