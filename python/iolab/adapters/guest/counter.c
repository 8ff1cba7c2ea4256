/* Counts a guest's instructions, block by block, while its load runs: a QEMU TCG plugin (API version 1).
 *
 * The load marks begin and end with an instruction that does nothing (crates/engine/src/marker.rs). At each end the
 * counts since the begin are appended to a file, which python/iolab/adapters/guest/counted.py reads:
 *
 *   struct window { u64 magic, blocks, kernel_task, kernel_thread, interrupt, softirq; }
 *   then per executed block: struct block { u64 start; u32 bytes, instructions; u64 executed; }
 *
 * Arguments: out=FILE, and functions=FILE with a line `START END KIND` (hexadecimal) per function that changes in whose
 * name the processor works. KIND: i an interrupt's handler, s the soft interrupts', w the switch between tasks, c a
 * system call's entry. Without such a file, contexts are not told apart and the four sums are zero.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of qemu-plugin.h that is used here; the interface is stable within a version. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct { const char *target_name; struct { int min, cur; } version; bool system_emulation;
                 struct { int smp_vcpus, max_vcpus; } system; } qemu_info_t;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_MEM_RW = 3 };
typedef void (*vcpu_udata_cb)(unsigned vcpu, void *udata);
typedef void (*vcpu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int op, void *ptr, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, vcpu_udata_cb, int flags, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, vcpu_udata_cb, int flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, vcpu_mem_cb, int flags, int rw, void *udata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define MAGIC 0x31746e756f636f69ull /* "iocount1" */
static const uint8_t BEGIN[9] = {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x4c, 0x4f, 0x49};
static const uint8_t END[9] = {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x4c, 0x4f, 0x49};

/* Blocks: chained by a hash of where they begin; never freed, as translated code points at their counters. */
struct block { uint64_t start; uint32_t bytes, instructions; uint64_t executed; struct block *next; };
enum { BUCKETS = 1 << 18 };
static struct block *buckets[BUCKETS];

/* Functions that change the context, in the order of their addresses. */
struct function { uint64_t start, end; char kind; };
static struct function *functions;
static size_t function_count;

/* Of one virtual CPU: whose turn it is. A task is known by its kernel stack. */
enum { THREAD_BYTES = 16384, STACKS = 4096, DEPTH_MAX = 16 };
struct task { uint64_t stack, instructions; bool calls; };
static struct task tasks[STACKS];
static struct task *task = &tasks[0];
static char nested[DEPTH_MAX];
static int depth;
static uint64_t total, accounted, interrupt_instructions, softirq_instructions;

static FILE *out;

static struct block *block_of(uint64_t start, uint32_t bytes, uint32_t instructions) {
    struct block **bucket = &buckets[(start ^ start >> 18) % BUCKETS];
    for (struct block *b = *bucket; b; b = b->next)
        if (b->start == start && b->bytes == bytes && b->instructions == instructions) return b;
    struct block *made = calloc(1, sizeof *made);
    if (!made) abort();
    *made = (struct block){start, bytes, instructions, 0, *bucket};
    return *bucket = made;
}

static const struct function *function_at(uint64_t address) {
    size_t low = 0, high = function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (functions[middle].end <= address) low = middle + 1; else high = middle;
    }
    return low < function_count && functions[low].start <= address ? &functions[low] : NULL;
}

/* What ran since the last look was run for whoever was current. */
static void account(void) {
    uint64_t ran = total - accounted;
    accounted = total;
    if (depth == 0) task->instructions += ran;
    else if (nested[depth - 1] == 's') softirq_instructions += ran;
    else interrupt_instructions += ran;
}

static void entered(unsigned vcpu, void *kind) {
    account();
    if (depth < DEPTH_MAX) nested[depth++] = *(const char *)kind;
}

static void left(unsigned vcpu, void *kind) {
    account();
    if (depth > 0) depth--;
}

static void called(unsigned vcpu, void *unused) { task->calls = true; }

/* The switch saves registers on the old stack and takes them from the new one: its last access tells the new task. */
static void switched(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    uint64_t stack = vaddr / THREAD_BYTES;
    if (vaddr >> 63 == 0 || stack == task->stack) return;
    size_t at = (stack ^ stack >> 12) % STACKS;
    for (size_t tried = 0; tasks[at].stack && tasks[at].stack != stack; at = (at + 1) % STACKS)
        if (++tried == STACKS) return;
    account();
    depth = 0;
    tasks[at].stack = stack;
    task = &tasks[at];
}

static void begin(unsigned vcpu, void *unused) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next) b->executed = 0;
    for (size_t i = 0; i < STACKS; i++) tasks[i].instructions = 0;
    total = accounted = interrupt_instructions = softirq_instructions = 0;
}

static void end(unsigned vcpu, void *unused) {
    account();
    uint64_t blocks = 0, of_tasks = 0, of_threads = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next) blocks += b->executed != 0;
    for (size_t i = 0; i < STACKS; i++)
        *(tasks[i].calls ? &of_tasks : &of_threads) += tasks[i].instructions;
    if (!function_count) of_tasks = of_threads = 0;
    uint64_t window[] = {MAGIC, blocks, of_tasks, of_threads, interrupt_instructions, softirq_instructions};
    fwrite(window, sizeof window, 1, out);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next)
            if (b->executed) fwrite(b, offsetof(struct block, next), 1, out);
    fflush(out);
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

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t start = qemu_plugin_tb_vaddr(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    uint64_t end_at = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
    struct block *b = block_of(start, (uint32_t)(end_at - start), (uint32_t)n);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->executed, 1);
    const struct function *f = function_count && start >> 63 ? function_at(start) : NULL;
    if (function_count) {
        /* Callbacks of a block come before its sum: what came before it is accounted to who ran it. */
        if (f && f->kind == 'c' && start == f->start)
            qemu_plugin_register_vcpu_tb_exec_cb(tb, called, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (f && (f->kind == 'i' || f->kind == 's')) {
            if (start == f->start)
                qemu_plugin_register_vcpu_tb_exec_cb(tb, entered, QEMU_PLUGIN_CB_NO_REGS, (void *)&f->kind);
            if (leaves(f, last))
                qemu_plugin_register_vcpu_insn_exec_cb(last, left, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &total, n);
        for (size_t i = 0; f && f->kind == 'w' && i < n; i++)
            qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), switched, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, NULL);
    }
    if (start >> 63) return;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (qemu_plugin_insn_size(insn) != sizeof BEGIN) continue;
        const void *code = qemu_plugin_insn_data(insn);
        if (!memcmp(code, BEGIN, sizeof BEGIN))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
        else if (!memcmp(code, END, sizeof END))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static int by_start(const void *a, const void *b) {
    uint64_t x = ((const struct function *)a)->start, y = ((const struct function *)b)->start;
    return (x > y) - (x < y);
}

static bool read_functions(const char *path) {
    FILE *in = fopen(path, "r");
    if (!in) return false;
    struct function f;
    while (fscanf(in, "%lx %lx %c", &f.start, &f.end, &f.kind) == 3) {
        functions = realloc(functions, (function_count + 1) * sizeof f);
        if (!functions) abort();
        functions[function_count++] = f;
    }
    fclose(in);
    qsort(functions, function_count, sizeof f, by_start);
    return true;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) out = fopen(argv[i] + 4, "wb");
        else if (!strncmp(argv[i], "functions=", 10) && !read_functions(argv[i] + 10)) return -1;
    }
    if (!out) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
