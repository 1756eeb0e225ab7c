/* The memory that `dpinfer plan` predicts is what `dpinfer run` takes, within 5 % and a fixed 2 MiB
 * for what the C library, OpenMP and the page tables hold. From outside, on a model of 65 MB. */
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

enum { N_RECORDS = 32, N_UNITS = 4, RECORD_BYTES = 600 };
static char folder[] = "memory-XXXXXX";

/* Runs dpinfer with output to `out`; the most memory it held, in bytes. */
static double peak_of(const char *const *argv, const char *out) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0)
            execv(DPI_CLI, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    struct rusage usage;
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return (double)usage.ru_maxrss * 1024;
}

static void write_records(const char *path, int n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    uint64_t seed = 1;
    for (int i = 0; i < n; i++) {
        fputs("{\"text\": \"", f);
        for (int k = 0; k < RECORD_BYTES; k++) /* more than --max-ref-tokens: all are cut to it */
            fputc('a' + random_below(&seed, 26), f);
        fputs("\"}\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_records("records.jsonl", N_RECORDS);
    write_records("units.jsonl", N_UNITS);
    const char *make[] = {"dpinfer", "make-model",   "--type", "Q8_0", "--layers", "4",    "--embd",
                    "1024",    "--ff",         "2816",   "--heads", "16",    "--kv-heads", "4",
                    "--vocab-size", "8000",    "-o",     "m.gguf", "-q",     NULL};
    peak_of(make, "out");
    const char *small[] = {"dpinfer", "make-model",   "--type", "F32", "--layers", "2",    "--embd",
                     "512",     "--ff",         "1408",   "--heads", "8",    "--kv-heads", "4",
                     "--vocab-size", "2000",    "-o",     "f.gguf", "-q",     NULL};
    peak_of(small, "out");
    const char *tiny[] = {"dpinfer", "make-model", "--type", "Q8_0", "--layers", "2", "--embd",
                          "64", "--ff", "96", "--heads", "4", "--kv-heads", "2", "--vocab-size",
                          "400", "-o", "s.gguf", "-q", NULL};
    peak_of(tiny, "out");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink("records.jsonl"), unlink("units.jsonl"), unlink("m.gguf"), unlink("f.gguf");
    unlink("a.gguf"), unlink("merged.gguf"), unlink("s.gguf"), unlink("out");
    return chdir("..") || rmdir(folder);
}

static double predicted(const char *const *argv) {
    char text[1 << 14];
    peak_of(argv, "out");
    FILE *f = fopen("out", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *at = strstr(text, "\"memory_bytes\": ");
    assert_non_null(at);
    return strtod(at + strlen("\"memory_bytes\": "), NULL);
}

static void check(const char *batch, const char *kv) {
#define OPTIONS                                                                                    \
    "m.gguf", "records.jsonl", "-B", batch, "--num", "1", "--rho", "5", "-n", "16",                \
        "--max-ref-tokens", "80", "-t", "2", "--kv", kv
    const char *plan[] = {"dpinfer", "plan", OPTIONS, "--json", NULL};
    const char *run[] = {"dpinfer", "run", OPTIONS, "-q", NULL};
#undef OPTIONS
    double wanted = predicted(plan), found = peak_of(run, "out");
    if (!(fabs(wanted - found) <= 0.05 * found + (2 << 20)))
        fail_msg("-B %s --kv %s: %.1f MiB predicted, %.1f taken", batch, kv, wanted / (1 << 20),
                 found / (1 << 20));
}

enum { ADAPTER, MERGED, FULL };

/* What finetune --plan tells, of an adapter or of all weights: no less than is taken, and at most
 * 15 % more. All units join, so that every thread has one. */
static void check_tuning(const char *model, int how, const char *threads, const char *noise,
                         const char *amount) {
#define OPTIONS                                                                                    \
    "finetune", model, "units.jsonl", "--units", "4", "--expected", "4", noise, amount,            \
        "--delta", "1e-3", "--steps", "1", "--positions", "32", "-t", threads
    const char *more = how == FULL ? "--full" : how == MERGED ? "--merge" : NULL;
    const char *plan[] = {"dpinfer", OPTIONS, "--plan", "--json", more,
                          how == MERGED ? "merged.gguf" : NULL, NULL};
    const char *run[] = {"dpinfer", OPTIONS, "-q", "--overwrite", "-o", "a.gguf", more,
                         how == MERGED ? "merged.gguf" : NULL, NULL};
#undef OPTIONS
    unlink("merged.gguf");
    const double wanted = predicted(plan), found = peak_of(run, "out");
    if (!(found <= wanted && wanted <= 1.15 * found))
        fail_msg("finetune %s %s -t %s: %.1f MiB predicted, %.1f taken", model, more ? more : "",
                 threads, wanted / (1 << 20), found / (1 << 20));
}

static void test_adapter(void **state) {
    (void)state;
    check_tuning("m.gguf", ADAPTER, "1", "--sigma", "2");
    check_tuning("m.gguf", ADAPTER, "2", "--epsilon", "3");
    check_tuning("s.gguf", ADAPTER, "1", "--epsilon", "3");
    check_tuning("s.gguf", ADAPTER, "4", "--sigma", "2");
}

/* The model is opened a second time, when the training is over. */
static void test_merged(void **state) {
    (void)state;
    check_tuning("m.gguf", MERGED, "2", "--sigma", "2");
    check_tuning("f.gguf", MERGED, "1", "--sigma", "2");
    check_tuning("s.gguf", MERGED, "2", "--sigma", "2");
}

static void test_all_weights(void **state) {
    (void)state;
    check_tuning("f.gguf", FULL, "2", "--sigma", "2");
}

static void test_one(void **state) {
    (void)state;
    check("1", "f16");
}
static void test_eight(void **state) {
    (void)state;
    check("8", "f16");
}
static void test_many(void **state) {
    (void)state;
    check("32", "f32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_eight),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_all_weights),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
