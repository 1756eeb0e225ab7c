/* The memory that `dpinfer plan` predicts is what `dpinfer run` takes, but for 5 % less, 8 % more
 * and a fixed 2 MiB for what the C library, OpenMP and the page tables hold: the most with the
 * longest records, the usual one with short ones. From outside, on a model of 35 MB. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

enum { N_RECORDS = 32, N_UNITS = 4, RECORD_BYTES = 600, SHORT_BYTES = 30 };
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

static void write_records(const char *path, int n, int n_bytes) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    uint64_t seed = 1;
    for (int i = 0; i < n; i++) {
        fputs("{\"text\": \"", f);
        for (int k = 0; k < n_bytes; k++)
            fputc('a' + random_below(&seed, 26), f);
        fputs("\"}\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

static void make_model(const char *path, const char *type, const char *layers, const char *embd,
                       const char *ff, const char *heads, const char *kv_heads, const char *vocab) {
    const char *argv[] = {"dpinfer", "make-model", "--type",     type,     "--layers",
                          layers,    "--embd",     embd,         "--ff",   ff,
                          "--heads", heads,        "--kv-heads", kv_heads, "--vocab-size",
                          vocab,     "-o",         path,         "-q",     NULL};
    peak_of(argv, "out");
}

SETUP {
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_records("records.jsonl", N_RECORDS, RECORD_BYTES); /* more than --max-ref-tokens */
    write_records("short.jsonl", N_RECORDS, SHORT_BYTES);
    write_records("units.jsonl", N_UNITS, RECORD_BYTES);
    make_model("m.gguf", "Q8_0", "2", "1024", "2816", "16", "4", "8000");
    make_model("f.gguf", "F32", "2", "512", "1408", "8", "4", "2000");
    /* Small, but not so small that the pages of libraries, of which the system may take one or two
     * MiB away at any time, are a tenth of the process. */
    make_model("s.gguf", "Q8_0", "2", "256", "512", "4", "2", "4000");
}

TEARDOWN { remove_dir(folder); }

static double predicted(const char *const *argv, const char *key) {
    char text[1 << 14], quoted[64];
    peak_of(argv, "out");
    FILE *f = fopen("out", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(text, quoted);
    assert_non_null(at);
    return strtod(at + strlen(quoted), NULL);
}

/* limit: what --max-ref-tokens or --ref-tokens say. over: what may be predicted too much, since a
 * part of a block of caches that no token has reached takes no memory. */
static void check(const char *records, const char *limit, const char *n_limit, const char *key,
                  const char *batch, const char *kv, double over) {
#define OPTIONS                                                                                    \
    "m.gguf", records, "-B", batch, "--num", "1", "--rho", "5", "-n", "8", limit, n_limit, "-t",   \
        "2", "--kv", kv
    const char *plan[] = {"dpinfer", "plan", OPTIONS, "--json", NULL};
    const char *run[] = {"dpinfer", "run", OPTIONS, "-q", NULL};
#undef OPTIONS
    double wanted = predicted(plan, key), found = peak_of(run, "out");
    if (!(found - wanted <= 0.05 * found + (2 << 20) &&
          wanted - found <= over * found + (2 << 20)))
        fail_msg("%s -B %s --kv %s: %.1f MiB predicted, %.1f taken", records, batch, kv,
                 wanted / (1 << 20), found / (1 << 20));
}

static void check_most(const char *batch, const char *kv) {
    check("records.jsonl", "--max-ref-tokens", "80", "memory_bytes", batch, kv, .08);
}

enum { ADAPTER, MERGED, FULL };

/* What finetune --plan tells, of an adapter or of all weights: no less than is taken, and at most
 * 15 % more. All units join, so that every thread has one. */
static void check_tuning(const char *model, int how, const char *threads, const char *noise,
                         const char *amount) {
#define OPTIONS                                                                                    \
    "finetune", model, "units.jsonl", "--units", "4", "--expected", "4", noise, amount, "--delta", \
        "1e-3", "--steps", "1", "--positions", "32", "-t", threads
    const char *more = how == FULL ? "--full" : how == MERGED ? "--merge" : NULL;
    const char *plan[] = {
        "dpinfer", OPTIONS, "--plan", "--json", more, how == MERGED ? "merged.gguf" : NULL, NULL};
    const char *run[] = {"dpinfer", OPTIONS,  "-q", "--overwrite",
                         "-o",      "a.gguf", more, how == MERGED ? "merged.gguf" : NULL,
                         NULL};
#undef OPTIONS
    unlink("merged.gguf");
    const double wanted = predicted(plan, "memory_bytes"), found = peak_of(run, "out");
    if (!(found <= wanted && wanted <= 1.15 * found))
        fail_msg("finetune %s %s -t %s: %.1f MiB predicted, %.1f taken", model, more ? more : "",
                 threads, wanted / (1 << 20), found / (1 << 20));
}

TEST(test_adapter) {
    check_tuning("m.gguf", ADAPTER, "1", "--sigma", "2");
    check_tuning("m.gguf", ADAPTER, "2", "--epsilon", "3");
    check_tuning("s.gguf", ADAPTER, "1", "--epsilon", "3");
    check_tuning("s.gguf", ADAPTER, "4", "--sigma", "2");
}

/* The model is opened a second time, when the training is over. */
TEST(test_merged) {
    check_tuning("m.gguf", MERGED, "2", "--sigma", "2");
    check_tuning("f.gguf", MERGED, "1", "--sigma", "2");
    check_tuning("s.gguf", MERGED, "2", "--sigma", "2");
}

TEST(test_all_weights) { check_tuning("f.gguf", FULL, "2", "--sigma", "2"); }

TEST(test_one) { check_most("1", "f16"); }
TEST(test_eight) { check_most("8", "f16"); }
TEST(test_many) { check_most("32", "f32"); }

TEST(test_usual) {
    check("short.jsonl", "--ref-tokens", "30", "memory_usual_bytes", "32", "f32", .15);
}
