/* Who called whom: each task's calls under way, by where their return addresses lie on its stack, and for each chain of
 * them the instructions that its last function executed itself.
 *
 * A call is known by the write of its return address and by the block that follows; a return, by the read. A jump to where
 * another function begins is a last call: that function takes its caller's place. A task that slept in a call since before
 * the first look has its later calls at the top. */
#include "counter.h"
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 16384, NODES_MAX = 1 << 18, HASHED = 1 << 19 };
#define KERNEL_MODULES 0xffffffffc0000000ull
/* The slot of a way into the kernel, which no return reads. */
#define WAY_IN UINT64_MAX

bool chains_on;
struct node *nodes;
uint32_t node_count = 1; /* The first: outside of all functions known, and user mode. */
static uint32_t *hashed;

void chains_begin(void) {
    if (!chains_on) return;
    if (!nodes) {
        nodes = calloc(NODES_MAX, sizeof *nodes);
        hashed = calloc(HASHED, sizeof *hashed);
        if (!nodes || !hashed) abort();
    }
    for (uint32_t i = 0; i < node_count; i++) nodes[i].instructions = 0;
}

static uint32_t child(uint32_t parent, uint64_t function) {
    size_t at = ((function >> 4) * 0x9e3779b97f4a7c15ull >> 20 ^ parent * 0x85ebca6bu) % HASHED;
    for (; hashed[at]; at = (at + 1) % HASHED)
        if (nodes[hashed[at]].parent == parent && nodes[hashed[at]].function == function) return hashed[at];
    if (node_count == NODES_MAX) return parent;
    nodes[node_count] = (struct node){function, 0, parent, 0};
    return hashed[at] = node_count++;
}

static void unwind(struct task *task, uint64_t slot) {
    while (task->depth) {
        uint64_t top = task->frames[task->depth - 1].slot;
        if (top > slot || top / STACK_BYTES != slot / STACK_BYTES) break;
        task->depth--;
    }
}

static void push(struct task *task, uint64_t slot, uint64_t function) {
    if (task->depth == FRAMES_MAX) return;
    uint32_t parent = task->depth ? task->frames[task->depth - 1].node : 0;
    task->frames[task->depth++] = (struct frame){slot, child(parent, function)};
}

static struct cpu *ready(unsigned vcpu) {
    struct cpu *cpu = &cpus[vcpu % CPUS_MAX];
    if (!cpu->task) cpu->task = &cpu->unknown;
    if (!nodes) chains_begin();
    account(cpu);
    return cpu;
}

static void calls(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    if (qemu_plugin_mem_is_store(info)) cpus[vcpu % CPUS_MAX].called_from = vaddr;
}

static void returns(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    if (!qemu_plugin_mem_is_store(info)) unwind(ready(vcpu)->task, vaddr);
}

static void begins(unsigned vcpu, void *at) {
    struct cpu *cpu = ready(vcpu);
    struct task *task = cpu->task;
    if (cpu->called_from) {
        unwind(task, cpu->called_from);
        push(task, cpu->called_from, (uint64_t)at);
    } else if ((uint64_t)at < KERNEL_MODULES && task->depth && task->frames[task->depth - 1].slot != WAY_IN) {
        struct frame *top = &task->frames[task->depth - 1];
        top->node = child(nodes[top->node].parent, (uint64_t)at);
    }
    cpu->called_from = 0;
}

static void enters(unsigned vcpu, void *at) {
    struct cpu *cpu = ready(vcpu);
    cpu->called_from = 0;
    push(cpu->task, WAY_IN, (uint64_t)at);
}

static void calls_system(unsigned vcpu, void *at) {
    ready(vcpu)->task->depth = 0;
    enters(vcpu, at);
}

static void leaves(unsigned vcpu, void *unused) {
    struct task *task = ready(vcpu)->task;
    while (task->depth && task->frames[--task->depth].slot != WAY_IN) {}
}

static void leaves_system(unsigned vcpu, void *unused) { ready(vcpu)->task->depth = 0; }

static bool is_call(const uint8_t *code, size_t size) {
    if (code[0] == 0xe8 && size == 5) return true;
    size_t at = 0;
    while (at + 1 < size && (code[at] == 0x3e || (code[at] & 0xf0) == 0x40)) at++;
    return code[at] == 0xff && at + 1 < size && (code[at + 1] >> 3 & 7) == 2;
}

void chains_watch(const struct function *f, struct qemu_plugin_tb *tb) {
    uint64_t start = qemu_plugin_tb_vaddr(tb);
    if (f && start == f->start) {
        vcpu_udata_cb what = f->kind == 'c' ? calls_system : f->kind == 'e' ? enters : begins;
        qemu_plugin_register_vcpu_tb_exec_cb(tb, what, QEMU_PLUGIN_CB_NO_REGS, (void *)start);
    } else if (start >= KERNEL_MODULES && start % 16 == 0) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, begins, QEMU_PLUGIN_CB_NO_REGS, (void *)start);
    }
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
    const uint8_t *code = qemu_plugin_insn_data(last);
    size_t size = qemu_plugin_insn_size(last);
    if (is_call(code, size))
        qemu_plugin_register_vcpu_mem_cb(last, calls, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    else if (code[0] == 0xc3 || code[0] == 0xc2 || (code[0] == 0xf3 && size == 2 && code[1] == 0xc3))
        qemu_plugin_register_vcpu_mem_cb(last, returns, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    else if (size == 2 && code[0] == 0x48 && code[1] == 0xcf)
        qemu_plugin_register_vcpu_insn_exec_cb(last, leaves, QEMU_PLUGIN_CB_NO_REGS, NULL);
    else if (size == 3 && code[0] == 0x48 && code[1] == 0x0f && code[2] == 0x07)
        qemu_plugin_register_vcpu_insn_exec_cb(last, leaves_system, QEMU_PLUGIN_CB_NO_REGS, NULL);
}
