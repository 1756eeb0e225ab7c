#define _GNU_SOURCE
#include "support.h"

#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

const char *data_path(const char *relative) {
    static char buffers[4][1024];
    static unsigned next;
    char *b = buffers[next++ % 4];
    const char *root = getenv("DPI_DATA");
    int n = snprintf(b, sizeof buffers[0], "%s/%s", root ? root : DPI_TEST_DATA, relative);
    assert_true(n > 0 && (size_t)n < sizeof buffers[0]);
    return b;
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

void assert_ok_at(dpi_status status, const dpi_error *err, const char *what, const char *file,
                  int line) {
    if (status == DPI_STATUS_OK)
        return;
    print_error("%s: %s: %s\n", what, dpi_status_name((int32_t)status), err ? err->message : "");
    _fail(file, line);
}

void assert_error_at(dpi_status status, dpi_status wanted, const dpi_error *err, const char *part,
                     const char *file, int line) {
    if (status == wanted && err->code == (int32_t)wanted && strstr(err->message, part))
        return;
    print_error("status %s, message \"%s\"; wanted %s, \"...%s...\"\n",
                dpi_status_name((int32_t)status), status == DPI_STATUS_OK ? "" : err->message,
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
    dpi_error err;
    if (name)
        assert_ok(dpi_isa_parse(name, &isa, &err), &err);
    if (isa > dpi_isa_best()) {
        print_message("skipped: this processor has no %s\n", name);
        exit(77);
    }
    return isa;
}
