/* Counts a guest's instructions, block by block, while its load runs: a QEMU TCG plugin (API version 1).
 *
 * The load marks begin and end with an instruction that does nothing (crates/measure/engine/src/marker.rs). At each end the
 * counts since the begin are appended to a file, which python/iolab/machines/guest/counter_output.py reads:
 *
 *   struct window { u64 magic, blocks, kernel_task, kernel_thread, interrupt, softirq, reads, writes, misses, chains,
 *                   calls; }
 *   then per executed block: struct block { u64 start; u32 bytes, instructions; u64 executed, repetitions, moved; }
 *   then per chain of calls: struct node (counter.h); the first is outside of all
 *   then per system call that was made: struct system_call (counter.h)
 *   then of each block, in the same order, how many bytes each of its instructions has, with LOCKED if it is locked: u8
 *
 * A string instruction such as `rep movsq` is one instruction, whose repetitions are counted apart, with the bytes that
 * they took: `executed * instructions - repetitions` is what a block adds to a sum. With several virtual CPUs each
 * repetition is an instruction: QEMU then leaves the one out by which the last is known.
 *
 * Arguments: out=FILE, functions=FILE, cpus=N, and on demand memory=on, cache=BYTES, chains=on, and completion=own:
 * drives of QEMU complete at a time of the machine's own. FILE has a line `START END KIND` (hexadecimal) per function at
 * which the counter looks: i an interrupt's handler, s the soft interrupts', w the switch between tasks, c a system call's
 * entry, y the function that does one, e another way into the kernel, f any other one, of which only chains need to know.
 */
#include "counter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define MAGIC 0x36746e756f636f69ull /* "iocount6" */
enum { LOCKED = 0x80 };
static const uint8_t BEGIN[9] = {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x4c, 0x4f, 0x49};
static const uint8_t END[9] = {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x4c, 0x4f, 0x49};

/* Blocks: chained by a hash of where they begin; never freed, as translated code points at their counters. */
struct block { uint64_t start; uint32_t bytes, instructions; uint64_t executed, accesses; struct string string;
               struct block *next; uint8_t *sizes; uint64_t ended; bool may_end_early; };
struct written { uint64_t start; uint32_t bytes, instructions; uint64_t executed, repetitions, moved; };
enum { BUCKETS = 1 << 18 };
static struct block *buckets[BUCKETS];

/* Functions at which the counter looks, in the order of their addresses. */
static struct function *functions;
static size_t function_count;

/* With several virtual CPUs, each counts for itself, by a call for each block; one alone by an addition in line. */
static bool several;

static FILE *out;
/* A load that marks its ends without end would fill the disk. */
#define OUT_MAX_BYTES (1ll << 30)

/* QEMU 7.2 to 8.1 end a block before an instruction that crosses a page, unless it is the first, but report it with the
 * block, and again with the next one. How long such an instruction is they don't say; what is asked to happen when it is
 * executed does not happen. So the last instruction of a block is counted by itself where it may be one. */
enum { PAGE_BYTES = 4096, INSTRUCTION_BYTES_MAX = 15 };

static bool may_end_early(struct qemu_plugin_tb *tb) {
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t last = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, n - 1));
    return n > 1 && last % PAGE_BYTES > PAGE_BYTES - INSTRUCTION_BYTES_MAX;
}

/* How many of its instructions the block has. */
static uint32_t has(const struct block *b) { return b->instructions - (b->may_end_early && !b->ended); }

static struct block *block_of(struct qemu_plugin_tb *tb, uint32_t bytes, uint32_t instructions) {
    uint64_t start = qemu_plugin_tb_vaddr(tb);
    struct block **bucket = &buckets[(start ^ start >> 18) % BUCKETS];
    for (struct block *b = *bucket; b; b = b->next)
        if (b->start == start && b->bytes == bytes && b->instructions == instructions) return b;
    struct block *made = calloc(1, sizeof *made);
    uint8_t *sizes = malloc(instructions);
    if (!made || !sizes) abort();
    for (uint32_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        sizes[i] = (uint8_t)(qemu_plugin_insn_size(insn) | (is_locked(insn) ? LOCKED : 0));
    }
    *made = (struct block){.start = start, .bytes = bytes, .instructions = instructions, .sizes = sizes, .next = *bucket,
                           .may_end_early = may_end_early(tb)};
    if (!several) made->string = string_of(qemu_plugin_tb_get_insn(tb, instructions - 1));
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

static void begin(unsigned vcpu, void *unused) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next) b->executed = b->accesses = b->ended = 0;
    contexts_begin();
    chains_begin();
    memory_begin();
    waits_end();
}

static void end(unsigned vcpu, void *unused) {
    if (ftello(out) > OUT_MAX_BYTES) return;
    uint64_t blocks = 0, of_tasks = 0, of_threads = 0, calls = 0;
    contexts_sum(&of_tasks, &of_threads);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next) blocks += b->executed != 0;
    for (size_t i = 1; i < system_call_count; i++) calls += system_calls[i].executed != 0;
    uint64_t window[] = {MAGIC, blocks, of_tasks / HALVES, of_threads / HALVES, interrupt_instructions / HALVES,
                         softirq_instructions / HALVES,
                         memory_reads, memory_writes, cache_misses, chains_on ? node_count : 0, calls};
    fwrite(window, sizeof window, 1, out);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next)
            if (b->executed) {
                uint64_t repetitions = b->string.width ? b->accesses / b->string.accesses : 0;
                struct written w = {b->start, b->bytes, has(b), b->executed, repetitions, repetitions * b->string.width};
                fwrite(&w, sizeof w, 1, out);
            }
    for (uint32_t i = 0; chains_on && i < node_count; i++) {
        struct node whole = nodes[i];
        whole.instructions /= HALVES;
        fwrite(&whole, sizeof whole, 1, out);
    }
    for (size_t i = 1; i < system_call_count; i++) {
        struct system_call whole = system_calls[i];
        whole.instructions /= HALVES;
        if (whole.executed) fwrite(&whole, sizeof whole, 1, out);
    }
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next)
            if (b->executed) fwrite(b->sizes, 1, has(b), out);
    fflush(out);
}

static void ran(unsigned vcpu, void *instructions) { cpus[vcpu % CPUS_MAX].total += HALVES * (uintptr_t)instructions; }

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t start = qemu_plugin_tb_vaddr(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    uint64_t end_at = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
    struct block *b = block_of(tb, (uint32_t)(end_at - start), (uint32_t)n);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->executed, 1);
    /* Callbacks of a block come before its sum: what came before it is accounted to who ran it. */
    const struct function *f = start >> 63 ? function_at(start) : NULL;
    if (f) contexts_watch(f, tb);
    else if (!(start >> 63)) contexts_watch_user(tb);
    if (chains_on && start >> 63) chains_watch(f, tb);
    size_t together = n - b->may_end_early;
    if (several) qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)together);
    else qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &cpus[0].total, HALVES * together);
    if (b->may_end_early) {
        qemu_plugin_register_vcpu_insn_exec_inline(last, QEMU_PLUGIN_INLINE_ADD_U64, &b->ended, 1);
        if (several) qemu_plugin_register_vcpu_insn_exec_cb(last, ran, QEMU_PLUGIN_CB_NO_REGS, (void *)1);
        else qemu_plugin_register_vcpu_insn_exec_inline(last, QEMU_PLUGIN_INLINE_ADD_U64, &cpus[0].total, HALVES);
    }
    if (b->string.width) {
        qemu_plugin_register_vcpu_mem_inline(last, QEMU_PLUGIN_MEM_RW, QEMU_PLUGIN_INLINE_ADD_U64, &b->accesses, 1);
        qemu_plugin_register_vcpu_mem_inline(last, QEMU_PLUGIN_MEM_RW, QEMU_PLUGIN_INLINE_ADD_U64, &cpus[0].total,
                                             -(uint64_t)(HALVES / b->string.accesses));
    }
    for (size_t i = 0; i < n; i++) memory_watch(qemu_plugin_tb_get_insn(tb, i));
    for (size_t i = 0; completion_on && start >> 63 && i < n; i++)
        completion_watch(qemu_plugin_tb_get_insn(tb, i));
    for (size_t i = 0; i < n; i++) waits_watch(qemu_plugin_tb_get_insn(tb, i));
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
        else if (!strncmp(argv[i], "cpus=", 5)) several = atoi(argv[i] + 5) > 1;
        else if (!strcmp(argv[i], "chains=on")) chains_on = true;
        else if (!strcmp(argv[i], "memory=on")) memory_on = true;
        else if (!strncmp(argv[i], "cache=", 6) && !cache_make(strtoull(argv[i] + 6, NULL, 10))) return -1;
        else if (!strcmp(argv[i], "completion=own") && !completion_make())
            fputs("counter: drives complete at any time: this QEMU lacks a function\n", stderr);
        else if (!strncmp(argv[i], "functions=", 10) && !read_functions(argv[i] + 10)) return -1;
    }
    if (!out) return -1;
    if (!several) waits_make(id);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
