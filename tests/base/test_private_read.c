/* dpi_private_read: all of a file, or an errno that says why not; dpi_grow, dpi_private_grow. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "dpinfer/memory.h"
#include "tests/support/support.h"

enum { BYTES = 300001 }; /* more than the first room, no power of two */

static char expected[BYTES];

/* n_bytes of `expected` in a file, or in a pipe that a child fills. */
static int open_file(size_t n_bytes) {
    FILE *f = tmpfile();
    assert_non_null(f);
    const int fd = dup(fileno(f));
    fclose(f);
    assert_int_equal(write(fd, expected, n_bytes), n_bytes);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static int open_pipe(size_t n_bytes) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]); /* or it would not notice that the reader is gone */
        ssize_t sent = 1;
        for (size_t n = 0; n < n_bytes && sent > 0; n += (size_t)sent)
            sent = write(ends[1], expected + n, n_bytes - n);
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static void reads(int fd, size_t most, const char *from, size_t n_expected) {
    char *data = NULL;
    size_t n_bytes = 0;
    assert_int_equal(dpi_private_read(fd, most, &data, &n_bytes), 1);
    assert_int_equal(n_bytes, n_expected);
    assert_memory_equal(data, from, n_bytes);
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

TEST(test_whole) {
    static const size_t sizes[] = {0, 1, (1 << 16) - 2, (1 << 16) - 1, 1 << 16, BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        reads(open_file(n), SIZE_MAX, expected, n);
        reads(open_file(n), n, expected, n);
        reads(open_pipe(n), SIZE_MAX, expected, n);
        reads(open_pipe(n), n, expected, n);
    }
}

TEST(test_rest) {
    const int fd = open_file(BYTES);
    assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
    reads(fd, BYTES - 1000, expected + 1000, BYTES - 1000);
}

TEST(test_failures) {
    fails(open_file(1), 0, EFBIG);
    fails(open_file(BYTES), BYTES - 1, EFBIG);
    fails(open_pipe(BYTES), BYTES - 1, EFBIG);
    fails(open_pipe(BYTES), 10, EFBIG);
    fails(-1, SIZE_MAX, EBADF);
    fails(open("/", O_RDONLY | O_CLOEXEC), SIZE_MAX, EISDIR);
    for (int n = 1; n <= 2; n++) { /* of the second, as it grows */
        const int fd = n == 1 ? open_file(BYTES) : open_pipe(BYTES);
        fail_allocation(n);
        fails(fd, SIZE_MAX, ENOMEM);
        fail_allocation(0);
    }
}

static void grow_to(bool is_private, uint64_t **array, size_t *capacity, size_t n, bool works) {
    const size_t before = *capacity;
    const bool done = is_private ? dpi_private_grow(array, capacity, n, sizeof **array)
                                 : dpi_grow(array, capacity, n, sizeof **array);
    assert_true(done == works);
    assert_true(works ? *capacity >= n : *capacity == before);
}

/* What is in the array stays, also after a failure; a size that overflows is one. */
TEST(test_grow) {
    for (int is_private = 0; is_private < 2; is_private++) {
        uint64_t *array = NULL;
        size_t capacity = 0;
        for (size_t n = 1; n <= 1000; n++) {
            grow_to(is_private, &array, &capacity, n, true);
            array[n - 1] = n;
        }
        fail_allocation(1);
        grow_to(is_private, &array, &capacity, capacity, true); /* asks for nothing */
        grow_to(is_private, &array, &capacity, capacity + 1, false);
        fail_allocation(0);
        grow_to(is_private, &array, &capacity, SIZE_MAX / 2, false);
        grow_to(is_private, &array, &capacity, SIZE_MAX / 16 + 1, false);
        for (size_t n = 1; n <= 1000; n++)
            assert_int_equal(array[n - 1], n);
        if (is_private)
            dpi_private_free(array);
        else
            free(array);
    }
}

SETUP {
    uint64_t seed = 5;
    for (size_t i = 0; i < BYTES; i++)
        expected[i] = (char)random_below(&seed, 256);
}
