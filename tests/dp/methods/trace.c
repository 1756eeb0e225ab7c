/* trace.c - see trace.h. objdump says which registers an instruction's address is made of; with the
 * trap flag set the processor stops before each, and a signal handler sees what they hold. */
#define _GNU_SOURCE
#include "tests/dp/methods/trace.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- The program's instructions with an address -------------------------------------------- */

enum { NO_REGISTER = -1, VECTOR_REGISTER = -2 };

typedef struct operand {
    uint64_t at; /* of the instruction, as in the file */
    int32_t base, index;
} operand;

typedef struct program {
    operand *operands; /* ascending */
    size_t n, room;
    uint64_t end_label; /* trace_end, as in the file */
} program;

static const struct {
    const char *name;
    int place; /* in gregset_t */
} registers[] = {
    {"rax", REG_RAX}, {"rbx", REG_RBX}, {"rcx", REG_RCX}, {"rdx", REG_RDX},
    {"rsi", REG_RSI}, {"rdi", REG_RDI}, {"rbp", REG_RBP}, {"rsp", REG_RSP},
    {"r8", REG_R8},   {"r9", REG_R9},   {"r10", REG_R10}, {"r11", REG_R11},
    {"r12", REG_R12}, {"r13", REG_R13}, {"r14", REG_R14}, {"r15", REG_R15},
};

/* A register "%name" after the character at *p, which is moved past it. */
static int32_t parse_register(const char **p) {
    char name[8] = "";
    if (sscanf(++*p, "%%%7[a-z0-9]", name) != 1)
        return NO_REGISTER;
    *p += 1 + strlen(name);
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        if (strcmp(registers[i].name, name) == 0)
            return (int32_t)i;
    return strstr(name, "mm") ? VECTOR_REGISTER : NO_REGISTER; /* rip */
}

/* One line "  401000:\tmov 0x8(%rax,%rbx,4),%rcx". Displacement and scale are the instruction's
 * own, so the registers are what can differ. */
static void add_line(program *code, const char *line) {
    uint64_t at;
    char mnemonic[32];
    if (sscanf(line, " %lx: %31s", &at, mnemonic) != 2)
        return;
    const char *p = strchr(line, '(');
    /* Padding between loops has prefixes: "cs nopw 0x0(%rax,%rax,1)". */
    if (!p || strncmp(mnemonic, "lea", 3) == 0 || strstr(line, "nopw ") || strstr(line, "nopl "))
        return; /* no access to memory */
    if (code->n == code->room) {
        code->room = code->room ? 2 * code->room : 1 << 16;
        code->operands = realloc(code->operands, code->room * sizeof *code->operands);
        if (!code->operands)
            abort();
    }
    operand *o = &code->operands[code->n++];
    *o = (operand){at, parse_register(&p), NO_REGISTER};
    if (*p == ',')
        o->index = parse_register(&p);
}

static bool read_program(program *code) {
    char line[512], command[64];
    snprintf(command, sizeof command, "objdump -d --no-show-raw-insn /proc/%d/exe 2>/dev/null",
             (int)getpid());
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        uint64_t at;
        if (strstr(line, "<trace_end>:") && sscanf(line, "%lx", &at) == 1)
            code->end_label = at;
        else
            add_line(code, line);
    }
    return f && pclose(f) == 0 && code->n > 0 && code->end_label != 0;
}

static int by_place(const void *a, const void *b) {
    const uint64_t x = ((const operand *)a)->at, y = ((const operand *)b)->at;
    return (x > y) - (x < y);
}

static const operand *find(const program *code, uint64_t at) {
    const operand key = {.at = at};
    return bsearch(&key, code->operands, code->n, sizeof key, by_place);
}

/* ---- Runs ----------------------------------------------------------------------------------- */

enum { MAX_STEPS = 1 << 20, TRAP_FLAG = 1 << 8 };

typedef struct step {
    uint64_t at, base, index; /* registers of the address; 0 where there is none */
} step;

/* What the signal handler works on. */
static struct {
    program code;
    uint64_t shift; /* of the program's addresses in memory against those in the file */
    step *steps;    /* of the first run */
    int64_t n, k;   /* steps of the first run; of this one so far */
    int64_t n_memory;
    bool first, differs;
    step last;
} trace;

void trace_end(void);
__attribute__((noinline)) void trace_end(void) { __asm__ volatile(""); }

static uint64_t value_of(const greg_t *r, int32_t which) {
    return which >= 0 ? (uint64_t)r[registers[which].place] : 0;
}

/* Before each instruction: `context` is what it will find. */
static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    if ((uint64_t)r[REG_RIP] == (uint64_t)(uintptr_t)trace_end) {
        r[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    const uint64_t at = (uint64_t)r[REG_RIP] - trace.shift;
    const operand *o = find(&trace.code, at);
    const step s = {at, o ? value_of(r, o->base) : 0, o ? value_of(r, o->index) : 0};
    const bool room = trace.k < (trace.first ? MAX_STEPS : trace.n);
    if (trace.first && room) {
        trace.steps[trace.n++] = s;
        trace.n_memory += o != NULL;
    }
    trace.last = s;
    trace.differs = !room || (o && o->index == VECTOR_REGISTER) ||
                    memcmp(&trace.steps[trace.k], &s, sizeof s) != 0;
    trace.k += !trace.differs;
    if (trace.differs)
        r[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* One run with the trap flag set. */
static void follow(void (*run)(void *), void *arg) {
    trace.k = 0;
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
    run(arg);
    trace_end();
}

static trace_result compare(void (*prepare)(void *, int), void (*run)(void *), void *arg,
                            int n_runs, trace_report *report) {
    trace.n = trace.n_memory = 0;
    prepare(arg, 0); /* binds the symbols of shared libraries */
    run(arg);
    for (int r = 0; r < n_runs; r++) {
        trace.first = r == 0;
        trace.differs = false;
        prepare(arg, r);
        follow(run, arg);
        report->n_steps = trace.n;
        report->n_memory = trace.n_memory;
        if (!trace.differs && trace.k == trace.n)
            continue;
        snprintf(report->message, sizeof report->message,
                 "run %d, instruction %lld of %lld: at %#lx with address registers %#lx, %#lx", r,
                 (long long)trace.k, (long long)trace.n, trace.last.at, trace.last.base,
                 trace.last.index);
        return TRACE_DIFFERS;
    }
    return TRACE_SAME;
}

trace_result trace_compare(void (*prepare)(void *, int), void (*run)(void *), void *arg, int n_runs,
                           trace_report *report) {
    *report = (trace_report){0};
    if (trace.code.n == 0) { /* read once for all comparisons */
        if (!read_program(&trace.code)) {
            snprintf(report->message, sizeof report->message,
                     "no objdump to read the program with");
            return TRACE_UNAVAILABLE;
        }
        trace.shift = (uint64_t)(uintptr_t)trace_end - trace.code.end_label;
        trace.steps = calloc(MAX_STEPS, sizeof *trace.steps);
        if (!trace.steps)
            abort();
    }
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGTRAP, &action, &before);
    trace_result result = compare(prepare, run, arg, n_runs, report);
    sigaction(SIGTRAP, &before, NULL);
    return result;
}
