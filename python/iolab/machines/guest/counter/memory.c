/* Memory accesses, and the misses of a simple cache: one for each virtual CPU, of lines of 64 bytes, 8 ways, of which the
 * least recently used goes, by virtual addresses. Nothing is fetched ahead, and CPUs take no lines from one another. An
 * access is at the line that it begins in. */
#include "counter.h"
#include <stdlib.h>

enum { LINE_BYTES = 64, WAYS = 8 };

bool memory_on;
uint64_t memory_reads, memory_writes, cache_misses;
static uint64_t sets;
static uint64_t *lines;

bool cache_make(uint64_t bytes) {
    sets = bytes / LINE_BYTES / WAYS;
    lines = sets ? calloc(CPUS_MAX * sets * WAYS, sizeof *lines) : NULL;
    return lines != NULL;
}

void memory_begin(void) { memory_reads = memory_writes = cache_misses = 0; }

static void accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused) {
    if (qemu_plugin_mem_is_store(info)) memory_writes++; else memory_reads++;
    if (!lines) return;
    uint64_t line = vaddr / LINE_BYTES, *set = lines + (vcpu % CPUS_MAX * sets + line % sets) * WAYS;
    if (set[0] == line) return;
    int way = 1;
    while (way < WAYS - 1 && set[way] != line) way++;
    if (set[way] != line) cache_misses++;
    for (; way > 0; way--) set[way] = set[way - 1];
    set[0] = line;
}

void memory_watch(struct qemu_plugin_insn *insn) {
    if (memory_on) qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}
