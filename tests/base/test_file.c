/* Regular files: what is opened, and writes that the system cuts short. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/support.h"

enum { BYTES = (1 << 22) + 3 }; /* many times what a pipe holds */

static char dir[128];
static uint8_t sent[BYTES], received[BYTES];
static volatile sig_atomic_t n_signals;

static void count_signal(int number) {
    (void)number;
    n_signals = n_signals + 1;
}

typedef struct pipe_end {
    int fd;
    pthread_t sender;
} pipe_end;

/* Reads the pipe page by page. A signal to the sender, who waits for room, comes before each. */
static void *read_pipe(void *argument) {
    const pipe_end *end = argument;
    for (size_t n = 0; n < BYTES;) {
        pthread_kill(end->sender, SIGUSR1);
        const ssize_t got = read(end->fd, received + n, BYTES - n < 4096 ? BYTES - n : 4096);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return NULL;
}

/* A signal ends a write with fewer bytes, or with EINTR: all of them arrive, in their order. */
static void test_interrupted(void **state) {
    (void)state;
    int ends[2];
    pthread_t reader;
    uint64_t seed = 7;
    for (int i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)random_below(&seed, 256);
    const struct sigaction act = {.sa_handler = count_signal}; /* without SA_RESTART */
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
    assert_int_equal(pipe(ends), 0);
    pipe_end end = {ends[0], pthread_self()};
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &end), 0);
    const bool written = dpi_file_write(ends[1], sent, BYTES);
    close(ends[1]);
    assert_int_equal(pthread_join(reader, NULL), 0);
    close(ends[0]);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_true(written);
    assert_true(n_signals > 0);
    assert_memory_equal(received, sent, BYTES);
}

static void test_refused(void **state) {
    (void)state;
    int fd = open("/dev/full", O_WRONLY);
    assert_true(fd >= 0);
    errno = 0;
    assert_false(dpi_file_write(fd, sent, 5000));
    assert_int_equal(errno, ENOSPC);
    assert_true(dpi_file_write(fd, sent, 0));
    close(fd);
    fd = open("/dev/null", O_RDONLY);
    assert_false(dpi_file_write(fd, sent, 1));
    assert_int_equal(errno, EBADF);
    close(fd);
}

static void test_names(void **state) {
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/file", dir); /* the file itself need not be there */
    assert_true(dpi_file_sync_names(path));
    assert_true(dpi_file_sync_names("file"));
    assert_true(dpi_file_sync_names("/file"));
    snprintf(path, sizeof path, "%s/none/file", dir);
    assert_false(dpi_file_sync_names(path));
    assert_int_equal(errno, ENOENT);
}

/* A FIFO without a writer is refused at once, and so are a folder and a device. */
static void test_open(void **state) {
    (void)state;
    dpi_error err;
    char path[256];
    FILE *file = NULL;
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_error(dpi_file_open(path, &file, &err), DPI_STATUS_IO, &err, "not a regular file");
    assert_error(dpi_file_open(dir, &file, &err), DPI_STATUS_IO, &err, "not a regular file");
    assert_error(dpi_file_open("/dev/zero", &file, &err), DPI_STATUS_IO, &err, "not a regular");
    snprintf(path, sizeof path, "%s/none", dir);
    assert_error(dpi_file_open(path, &file, &err), DPI_STATUS_IO, &err, path);
    assert_null(file);
    write_file(path, "text", 4);
    assert_ok(dpi_file_open(path, &file, &err), &err);
    assert_int_equal(fgetc(file), 't');
    fclose(file);
}

static void expect_text(const char *path, const char *text) {
    char found[16] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    fclose(file);
    assert_string_equal(found, text);
}

/* The file of a symbolic link is replaced, or stays; a signal waits until there is no other one. */
static void test_new_file(void **state) {
    (void)state;
    char path[256], link[256], temporary[256];
    const struct sigaction act = {.sa_handler = count_signal};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
    snprintf(path, sizeof path, "%s/new", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    write_file(path, "old", 3);
    assert_int_equal(symlink("new", link), 0);
    for (int whole = 0; whole < 2; whole++) {
        dpi_new_file f;
        n_signals = 0;
        assert_true(dpi_new_file_open(&f, link));
        snprintf(temporary, sizeof temporary, "%s", f.temporary);
        assert_true(dpi_file_write(f.fd, "fresh", 5));
        raise(SIGUSR1);
        assert_int_equal(n_signals, 0);
        expect_text(path, "old");
        assert_true(dpi_new_file_close(&f, whole));
        assert_int_equal(n_signals, 1);
        assert_int_not_equal(access(temporary, F_OK), 0);
        expect_text(path, whole ? "fresh" : "old");
    }
    dpi_new_file f;
    snprintf(path, sizeof path, "%s/nowhere/file", dir);
    assert_false(dpi_new_file_open(&f, path));
    assert_int_equal(errno, ENOENT);
    raise(SIGUSR1); /* let in again */
    assert_int_equal(n_signals, 2);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static int set_up(void **state) {
    (void)state;
    make_dir(dir, sizeof dir);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    remove_dir(dir);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_new_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
