/* Programs that were compiled with an older header work on: their structs end earlier. */
#include <stdlib.h>

#include "base/struct.h"
#include "tests/include/older/job.h"
#include "tests/support/support.h"

static char *output_of(int (*job)(const char *, FILE *)) {
    char folder[1024], *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    make_dir(folder, sizeof folder);
    assert_int_equal(job(folder, out), 0);
    fclose(out);
    remove_dir(folder);
    return text;
}

TEST(test_the_same_job) {
    char *present = output_of(present_job), *older = output_of(older_job);
    assert_string_equal(older, present);
    assert_non_null(strstr(present, "2 of 2 texts over")); /* not nothing */
    free(present);
    free(older);
}

/* ---- By hand --------------------------------------------------------------------------------- */

typedef struct grown {
    size_t struct_size;
    int64_t a;
    double b;
    int64_t c;
} grown;

static void grown_init(grown *g) {
    const grown defaults = {.a = 1, .b = .5, .c = 3};
    dpi_struct_init(g, sizeof *g, &defaults, sizeof *g);
}

enum { OLDER = offsetof(grown, b) };

TEST(test_init) {
    const grown defaults = {.a = 1, .b = .5, .c = 3};
    grown g;
    for (size_t size = sizeof g.struct_size; size <= sizeof g; size += 8) {
        memset(&g, 0x5a, sizeof g);
        dpi_struct_init(&g, size, &defaults, sizeof g);
        assert_int_equal(g.struct_size, size);
        assert_int_equal(g.c, size == sizeof g ? 3 : 0x5a5a5a5a5a5a5a5a);
        assert_int_equal(g.a, size >= OLDER ? 1 : 0x5a5a5a5a5a5a5a5a);
    }
    /* A newer one: what is not known is 0. A size that is none: nothing. */
    dpi_struct_init(&g, sizeof g, &defaults, OLDER);
    assert_true(g.struct_size == sizeof g && g.a == 1 && g.b == 0 && g.c == 0);
    memset(&g, 0x5a, sizeof g);
    dpi_struct_init(&g, 4, &defaults, sizeof g);
    assert_int_equal(g.struct_size, 0x5a5a5a5a5a5a5a5a);
}

TEST(test_copy) {
    grown g, given = {.struct_size = OLDER, .a = 7, .b = 8, .c = 9};
    grown_init(&g);
    assert_int_equal(dpi_struct_copy(&g, &given, sizeof g, "grown", ERR), DPI_STATUS_OK);
    assert_true(g.struct_size == sizeof g && g.a == 7 && g.b == .5 && g.c == 3);
    given.struct_size = sizeof given;
    assert_int_equal(dpi_struct_copy(&g, &given, sizeof g, "grown", ERR), DPI_STATUS_OK);
    assert_true(g.struct_size == sizeof g && g.a == 7 && g.b == 8 && g.c == 9);
    static const size_t bad[] = {0, 8, 15, 17, sizeof given + 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        given.struct_size = bad[i];
        assert_error(dpi_struct_copy(&g, &given, sizeof g, "grown", ERR), ARG,
                     "must be a multiple of 8 from 16 to 32");
    }
    assert_error(dpi_struct_copy(&g, NULL, sizeof g, "grown", ERR), ARG, "grown is NULL");
}

TEST(test_give) {
    const grown made = {.struct_size = 999, .a = 4, .b = 5, .c = 6};
    grown g = {.struct_size = OLDER, .b = 1, .c = 2};
    dpi_struct_give(&g, &made, sizeof made);
    assert_true(g.struct_size == OLDER && g.a == 4 && g.b == 1 && g.c == 2);
    g.struct_size = sizeof g;
    dpi_struct_give(&g, &made, sizeof made);
    assert_true(g.struct_size == sizeof g && g.a == 4 && g.b == 5 && g.c == 6);
}

TEST(test_room) {
    dpi_wording w;
    dpi_wording_init(&w);
    assert_int_equal(dpi_wording_check(&w, ERR), DPI_STATUS_OK);
    w.room[7] = 1ull << 63;
    assert_error(dpi_wording_check(&w, ERR), ARG,
                 "dpi_wording.room[7] is 9223372036854775808, must be 0");
    dpi_run run; /* whose room is of half as many bytes */
    dpi_run_init(&run);
    run.room[0] = 7;
    assert_error(dpi_run_check(&run, ERR), ARG, "dpi_run.room[0] is 7, must be 0");
    dpi_wording_init(&w);
    w.struct_size -= 8;
    assert_error(dpi_wording_check(&w, ERR), ARG, "dpi_wording.struct_size is");
}
