/* Regular files: what is opened, and writes that the system cuts short. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/textfile.h"
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
TEST(test_interrupted) {
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

TEST(test_refused) {
    static const struct {
        const char *path;
        int flags, reason;
    } cases[] = {{"/dev/full", O_WRONLY, ENOSPC}, {"/dev/null", O_RDONLY, EBADF}};
    for (int i = 0; i < 2; i++) {
        const int fd = open(cases[i].path, cases[i].flags);
        assert_true(fd >= 0);
        errno = 0;
        assert_false(dpi_file_write(fd, sent, 5000));
        assert_int_equal(errno, cases[i].reason);
        assert_true(dpi_file_write(fd, sent, 0));
        close(fd);
    }
}

TEST(test_names) {
    assert_true(dpi_file_sync_names(path_in(dir, "none"))); /* the file itself need not be there */
    assert_true(dpi_file_sync_names("file"));
    assert_true(dpi_file_sync_names("/file"));
    assert_false(dpi_file_sync_names(path_in(dir, "none/file")));
    assert_int_equal(errno, ENOENT);
}

/* A FIFO without a writer is refused at once, and so are a folder and a device. */
TEST(test_open) {
    const char *none = path_in(dir, "none"), *fifo = path_in(dir, "fifo");
    FILE *file = NULL;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_error(dpi_file_open(fifo, &file, ERR), IO, "not a regular file");
    assert_error(dpi_file_open(dir, &file, ERR), IO, "not a regular file");
    assert_error(dpi_file_open("/dev/zero", &file, ERR), IO, "not a regular");
    assert_error(dpi_file_open(none, &file, ERR), IO, none);
    assert_null(file);
    write_file(none, "text", 4);
    assert_ok(dpi_file_open(none, &file, ERR));
    assert_int_equal(fgetc(file), 't');
    fclose(file);
}

/* As any editor writes it, and nothing that is no text. */
TEST(test_textfile) {
    static const struct {
        const char *bytes;
        size_t n_bytes;
        const char *wanted; /* "!": refused, with the message and the offset behind it */
        uint64_t offset;
    } files[] = {
        {"a\nb\n", 4, "a\nb\n", 0},        {"\xef\xbb\xbf" "a\r\nb", 7, "a\nb", 0},
        {"\r\r\na\rb\r", 7, "\r\na\rb\r", 0}, {"", 0, "", 0}, {"\xef\xbb\xbf", 3, "", 0},
        {"a\xef\xbb\xbf", 4, "a\xef\xbb\xbf", 0}, {"\xc3\xa9", 2, "\xc3\xa9", 0},
        {"ab\0c", 4, "!found a NUL byte", 2}, {"ab\xe9", 3, "!not UTF-8", 2},
        {"\xff\xfe" "a\0", 4, "!not UTF-8", 0},
        {"123456789", 9, "!allowed are 8 bytes", UINT64_MAX},
    };
    const char *path = path_in(dir, "side");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = NULL;
        size_t n = 0;
        write_file(path, files[i].bytes, files[i].n_bytes);
        const dpi_status status = dpi_textfile_read(path, 8, &text, &n, ERR);
        if (files[i].wanted[0] == '!') {
            assert_error(status, FORMAT, files[i].wanted + 1);
            assert_int_equal(ERR->offset, files[i].offset);
            assert_null(text);
            continue;
        }
        assert_ok(status);
        assert_string_equal(text, files[i].wanted);
        assert_int_equal(n, strlen(text));
        dpi_private_free(text);
    }
    char *text;
    size_t n;
    assert_error(dpi_textfile_read(path_in(dir, "nowhere"), 8, &text, &n, ERR), IO, "nowhere");
}

static void expect_text(const char *path, const char *text) {
    size_t n;
    char *found = read_file(path, &n);
    assert_string_equal(found, text);
    free(found);
}

/* The file of a symbolic link is replaced, or stays; a signal waits until there is no other one. */
TEST(test_new_file) {
    const char *path = path_in(dir, "new"), *link = path_in(dir, "link");
    const struct sigaction act = {.sa_handler = count_signal};
    struct sigaction before;
    dpi_new_file f;
    assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
    write_file(path, "old", 3);
    assert_int_equal(symlink("new", link), 0);
    for (int whole = 0; whole < 2; whole++) {
        char temporary[256];
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
    assert_false(dpi_new_file_open(&f, path_in(dir, "nowhere/file")));
    assert_int_equal(errno, ENOENT);
    raise(SIGUSR1); /* let in again */
    assert_int_equal(n_signals, 2);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

SETUP { make_dir(dir, sizeof dir); }

TEARDOWN { remove_dir(dir); }
