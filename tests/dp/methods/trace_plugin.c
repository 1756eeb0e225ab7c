/* trace_plugin.c - a plugin of QEMU's user mode that follows the program between two marks: a sum
 * over where the program counter went and which addresses were read and written. trace_qemu.c sets
 * the marks, and reads what this writes to the file of the option `seen`. It is built for the
 * machine that runs QEMU. Source: QEMU 7.2, "QEMU TCG Plugins", whose header Debian does not
 * have. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/dp/methods/trace_marks.h"

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, READ_AND_WRITE = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*call)(plugin_id id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            void (*call)(unsigned cpu, void *user), int flags,
                                            void *user);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*call)(unsigned cpu, uint32_t info, uint64_t address,
                                                   void *user),
                                      int flags, int which, void *user);
void qemu_plugin_register_vcpu_syscall_cb(
    plugin_id id, void (*call)(plugin_id id, unsigned cpu, int64_t number, uint64_t a,
                               uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                               uint64_t g, uint64_t h));

static char *path;
static bool follows;
static uint64_t n_steps, n_memory, sum;

static void add(uint64_t x) { /* SplitMix64's last steps: each place of each number counts */
    sum = (sum ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    sum = (sum ^ sum >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    sum ^= sum >> 27;
}

static void on_instruction(unsigned cpu, void *at) {
    (void)cpu;
    if (!follows)
        return;
    n_steps++;
    add((uint64_t)(uintptr_t)at);
}

static void on_memory(unsigned cpu, uint32_t info, uint64_t address, void *user) {
    (void)cpu, (void)info, (void)user;
    if (!follows)
        return;
    n_memory++;
    add(~address);
}

static void on_block(plugin_id id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        void *at = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, NO_REGISTERS, at);
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, NO_REGISTERS, READ_AND_WRITE, NULL);
    }
}

static void on_call(plugin_id id, unsigned cpu, int64_t number, uint64_t mark, uint64_t begins,
                    uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)number, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (mark != TRACE_MARK)
        return;
    follows = begins;
    if (begins) {
        n_steps = n_memory = sum = 0;
        return;
    }
    FILE *out = fopen(path, "w");
    if (!out)
        abort();
    fprintf(out, "%llu %llu %llu\n", (unsigned long long)n_steps, (unsigned long long)n_memory,
            (unsigned long long)sum);
    fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info,
                                                               int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "seen=", 5) != 0)
        return -1;
    path = strdup(argv[0] + 5);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    return path ? 0 : -1;
}
