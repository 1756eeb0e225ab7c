#define _GNU_SOURCE
#include "tests/support/support.h"

#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

const char *path_in(const char *folder, const char *name) {
    static char buffers[16][1024];
    static unsigned next;
    char *b = buffers[next++ % 16];
    int n = snprintf(b, sizeof buffers[0], "%s/%s", folder, name);
    assert_true(n > 0 && (size_t)n < sizeof buffers[0]);
    return b;
}

const char *data_path(const char *relative) {
    const char *root = getenv("DPI_DATA");
    return path_in(root ? root : DPI_TEST_DATA, relative);
}

void require_data(const char *relative) {
    const char *path = data_path(relative);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no shared data file %s\n", path);
        skip();
    }
}

char *read_file(const char *path, size_t *n_bytes) {
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    assert_true(n >= 0);
    rewind(f);
    char *data = malloc((size_t)n + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)n, f), (size_t)n);
    data[n] = '\0';
    fclose(f);
    *n_bytes = (size_t)n;
    return data;
}

char *make_dir(char *buffer, size_t size) {
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(buffer, size, "%s/dpinfer-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_true(n > 0 && (size_t)n < size);
    assert_non_null(mkdtemp(buffer));
    return buffer;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void remove_dir(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

void write_file(const char *path, const void *data, size_t n_bytes) {
    FILE *f = fopen(path, "wb");
    if (!f)
        fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(data, 1, n_bytes, f), n_bytes);
    assert_int_equal(fclose(f), 0);
}

_Thread_local dpi_error thread_error;

void assert_ok_at(dpi_status status, const char *what, const char *file, int line) {
    if (status == DPI_STATUS_OK)
        return;
    print_error("%s: %s: %s\n", what, dpi_status_name((int32_t)status), ERR->message);
    _fail(file, line);
}

void assert_status_at(dpi_status status, dpi_status wanted, const char *part, const char *file,
                      int line) {
    if (status == wanted && ERR->code == (int32_t)wanted && strstr(ERR->message, part))
        return;
    print_error("status %s, message \"%s\"; wanted %s, \"...%s...\"\n",
                dpi_status_name((int32_t)status), status == DPI_STATUS_OK ? "" : ERR->message,
                dpi_status_name((int32_t)wanted), part);
    _fail(file, line);
}

uint64_t random_u64(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double random_uniform(uint64_t *state) { return (double)(random_u64(state) >> 11) * 0x1p-53; }

double random_normal(uint64_t *state) {
    double u = 1.0 - random_uniform(state), v = random_uniform(state);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

int32_t random_below(uint64_t *state, int32_t n) {
    return (int32_t)(random_u64(state) % (uint64_t)n);
}

int32_t forced_isa(void) {
    const char *name = getenv("DPI_ISA");
    int32_t isa = DPI_ISA_AUTO;
    if (name)
        assert_ok(dpi_isa_parse(name, &isa, ERR));
    if (!dpi_isa_runs(isa)) {
        print_message("skipped: this processor has no %s\n", name);
        exit(77);
    }
    return isa;
}

int32_t limited_bits(void *source, void *buffer, size_t n_bytes) {
    limited_source *l = source;
    return l->n-- > 0 ? dpi_random_insecure(&l->seed, buffer, n_bytes) : -1;
}

dpi_session *open_session(const dpi_model *model, const dpi_session_options *base, int32_t n_seq,
                          int32_t n_ctx) {
    dpi_session_options o;
    dpi_session *s = NULL;
    dpi_session_options_init(&o);
    if (base)
        o = *base;
    o.n_seq = n_seq;
    o.n_ctx = n_ctx;
    assert_ok(dpi_session_create(model, &o, &s, ERR));
    assert_non_null(s);
    return s;
}

dpi_sampler *open_sampler(const dpi_sampler_options *options) {
    dpi_sampler *s = NULL;
    assert_ok(dpi_sampler_create(options, &s, ERR));
    assert_non_null(s);
    return s;
}

dpi_sampler_options ink_options(int32_t n_vocab, int32_t n_ref, int32_t n_tokens, double tau,
                                double rho) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.n_vocab = n_vocab;
    o.n_ref = n_ref;
    o.n_tokens = n_tokens;
    o.tau = tau;
    o.rho = rho;
    o.top_k = 0;
    return o;
}

void assert_refused(const dpi_sampler_options *options, dpi_status status, const char *part) {
    dpi_sampler_plan plan = {.struct_size = sizeof plan, .K = 77};
    dpi_sampler *s = NULL;
    assert_status(dpi_sampler_plan_make(options, &plan, ERR), status, part);
    assert_int_equal(plan.K, 77);
    assert_status(dpi_sampler_create(options, &s, ERR), status, part);
    assert_null(s);
}
