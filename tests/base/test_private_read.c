/* dpi_private_read: all of a file, or an errno that says why not. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/support.h"

enum { BYTES = 300001 }; /* more than the first room, no power of two */

static char expected[BYTES];

/* n_bytes of `expected` in a file, or in a pipe that a child fills. */
static int open_file(size_t n_bytes) {
    char path[] = "/tmp/private-read-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, expected, n_bytes), n_bytes);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    unlink(path);
    return fd;
}

static int open_pipe(size_t n_bytes) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]); /* or it would not notice that the reader is gone */
        size_t n = 0;
        while (n < n_bytes) {
            const ssize_t sent = write(ends[1], expected + n, n_bytes - n);
            if (sent <= 0)
                break;
            n += (size_t)sent;
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static void reads(int fd, size_t most, size_t n_expected) {
    char *data = NULL;
    size_t n_bytes = 0;
    assert_int_equal(dpi_private_read(fd, most, &data, &n_bytes), 1);
    assert_int_equal(n_bytes, n_expected);
    assert_memory_equal(data, expected, n_bytes);
    assert_int_equal(data[n_bytes], '\0');
    dpi_private_free(data);
    close(fd);
}

static void fails(int fd, size_t most, int reason) {
    char *data = expected;
    size_t n_bytes = 77;
    errno = 0;
    assert_int_equal(dpi_private_read(fd, most, &data, &n_bytes), 0);
    assert_int_equal(errno, reason);
    assert_ptr_equal(data, expected);
    assert_int_equal(n_bytes, 77);
    close(fd);
}

static void test_whole(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, (1 << 16) - 2, (1 << 16) - 1, 1 << 16, BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        reads(open_file(n), SIZE_MAX, n);
        reads(open_file(n), n, n);
        reads(open_pipe(n), SIZE_MAX, n);
        reads(open_pipe(n), n, n);
    }
}

static void test_rest(void **state) {
    (void)state;
    char *data;
    size_t n_bytes;
    const int fd = open_file(BYTES);
    assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
    assert_int_equal(dpi_private_read(fd, BYTES - 1000, &data, &n_bytes), 1);
    assert_int_equal(n_bytes, BYTES - 1000);
    assert_memory_equal(data, expected + 1000, n_bytes);
    dpi_private_free(data);
    close(fd);
}

static void test_failures(void **state) {
    (void)state;
    fails(open_file(1), 0, EFBIG);
    fails(open_file(BYTES), BYTES - 1, EFBIG);
    fails(open_pipe(BYTES), BYTES - 1, EFBIG);
    fails(open_pipe(BYTES), 10, EFBIG);
    fails(-1, SIZE_MAX, EBADF);
    fails(open("/", O_RDONLY | O_CLOEXEC), SIZE_MAX, EISDIR);
    const int in_file = open_file(BYTES);
    fail_allocation(1);
    fails(in_file, SIZE_MAX, ENOMEM);
    const int in_pipe = open_pipe(BYTES);
    fail_allocation(2); /* it grows */
    fails(in_pipe, SIZE_MAX, ENOMEM);
    fail_allocation(0);
}

int main(void) {
    uint64_t seed = 5;
    for (size_t i = 0; i < BYTES; i++)
        expected[i] = (char)random_below(&seed, 256);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
