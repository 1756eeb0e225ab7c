/* Tiles of an operation: each is assigned once; a thread computes its own share upwards, and then
 * what is left of the shares of slower threads. */
#include <omp.h>
#include <string.h>

#include "base/tiles.h"
#include "tests/support/support.h"

enum { THREADS_MAX = 8, TILES_MAX = 1000 };

static dpi_share_state shares[THREADS_MAX];

static void clear(void) {
    for (int i = 0; i < THREADS_MAX; i++)
        dpi_share_clear(&shares[i]);
}

/* The next tiles of the thread of t must be n from `expected` on; -1: there are none. */
static void assert_run(dpi_tiles *t, int64_t expected, int64_t n, bool stolen) {
    int64_t first = -1, last = -1;
    assert_int_equal(dpi_tiles_next(t, &first, &last), expected >= 0);
    assert_int_equal(first, expected);
    if (expected >= 0) {
        assert_int_equal(last - first, n);
        assert_int_equal(dpi_tiles_stolen(t), stolen);
    }
}

static void assert_next(dpi_tiles *t, int64_t expected, bool stolen) {
    assert_run(t, expected, 1, stolen);
}

TEST(test_alone) {
    clear();
    dpi_tiles t = dpi_tiles_begin(shares, 5, 0, 1);
    for (int64_t i = 0; i < 5; i++)
        assert_next(&t, i, false);
    assert_next(&t, -1, false);
    assert_int_equal(t.begin, 0);
    assert_int_equal(t.end, 5);
}

/* Shares of 10 tiles and 3 threads: [0, 3), [3, 6), [6, 10). */
TEST(test_a_late_thread) {
    clear();
    dpi_tiles late = dpi_tiles_begin(shares, 10, 0, 3), first = dpi_tiles_begin(shares, 10, 1, 3),
              last = dpi_tiles_begin(shares, 10, 2, 3);
    assert_next(&late, 0, false);
    for (int64_t i = 3; i < 6; i++)
        assert_next(&first, i, false);
    assert_next(&first, 9, true); /* from the back of the share after its own */
    assert_next(&last, 6, false);
    assert_next(&last, 7, false);
    assert_next(&last, 8, false);
    assert_next(&last, 2, true);
    assert_next(&first, 1, true);
    assert_next(&late, -1, false);
    assert_next(&first, -1, false);
    assert_next(&last, -1, false);
    assert_int_equal(late.end - late.begin, 1); /* its part of its own share, in one piece */
    assert_int_equal(first.end - first.begin, 3);
    assert_int_equal(last.begin, 6);
    assert_int_equal(last.end, 9);
}

/* A thread gets a quarter of what is left of its own share, or what others left of that. */
TEST(test_a_long_share) {
    clear();
    dpi_tiles slow = dpi_tiles_begin(shares, 80, 0, 2), fast = dpi_tiles_begin(shares, 80, 1, 2);
    assert_run(&slow, 0, 10, false);
    assert_run(&slow, 10, 7, false);
    static const int64_t sizes[] = {10, 7, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1};
    int64_t at = 40;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; at += sizes[i++])
        assert_run(&fast, at, sizes[i], false);
    assert_int_equal(at, 80);
    for (int64_t i = 39; i > 18; i--)
        assert_next(&fast, i, true);
    assert_run(&slow, 17, 2, false); /* a quarter of 23 is 5 */
    assert_next(&slow, -1, false);
    assert_next(&fast, -1, false);
    assert_int_equal(slow.end, 19);
}

/* Every tile is assigned once among threads that run, and each knows its own by their bounds. */
TEST(test_threads) {
    static unsigned char own[TILES_MAX], stolen[TILES_MAX];
    for (int64_t n = 0; n < TILES_MAX; n = 2 * n + 1)
        for (int n_threads = 1; n_threads <= THREADS_MAX; n_threads++) {
            clear();
            memset(own, 0, sizeof own);
            memset(stolen, 0, sizeof stolen);
#pragma omp parallel num_threads(n_threads)
            {
                dpi_tiles t =
                    dpi_tiles_begin(shares, n, omp_get_thread_num(), omp_get_num_threads());
                for (int64_t first, last; dpi_tiles_next(&t, &first, &last);)
                    for (int64_t i = first; i < last && dpi_tiles_stolen(&t); i++)
                        stolen[i]++;
                for (int64_t i = t.begin; i < t.end; i++)
                    own[i]++;
            }
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(own[i] + stolen[i], 1);
        }
}
