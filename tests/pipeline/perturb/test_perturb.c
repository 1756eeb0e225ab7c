/* test_perturb.c - vocabularies from files and models, the file of distances, the words of a text,
 * and what becomes of each. */
#include "dpinfer/perturb.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/perturb/words.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static const char VECTORS[] = "the 0 0\ncat 1 0\ndog 1 .5\nsat 0 2\nran .25 2\n7 3 3\n, 2 2\n";

static dpi_vocabulary *read_text(const char *folder, const char *text, int32_t n_most) {
    char path[512];
    dpi_vocabulary *v;
    dpi_error err = {0};
    snprintf(path, sizeof path, "%s/vectors.txt", folder);
    write_file(path, text, strlen(text));
    assert_ok(dpi_vocabulary_read(path, n_most, &v, &err), &err);
    return v;
}

static void refuse_text(const char *folder, const char *text, size_t n_bytes, const char *message) {
    char path[512];
    dpi_vocabulary *v;
    dpi_error err = {0};
    snprintf(path, sizeof path, "%s/vectors.txt", folder);
    write_file(path, text, n_bytes);
    assert_true(dpi_vocabulary_read(path, 0, &v, &err) != DPI_STATUS_OK);
    if (!strstr(err.message, message))
        fail_msg("'%s' has no '%s'", err.message, message);
}

static void test_files(void **state) {
    (void)state;
    char folder[256];
    make_dir(folder, sizeof folder);
    dpi_vocabulary *v = read_text(folder, VECTORS, 0);
    assert_int_equal(dpi_vocabulary_count(v), 7);
    assert_int_equal(dpi_vocabulary_dim(v), 2);
    assert_string_equal(dpi_vocabulary_word(v, 3), "sat");
    assert_int_equal(dpi_vocabulary_find(v, "dog", 3), 2);
    assert_int_equal(dpi_vocabulary_find(v, "dog", 2), -1);
    assert_int_equal(dpi_vocabulary_find(v, "dogs", 4), -1);
    dpi_vocabulary_free(v);
    v = read_text(folder, VECTORS, 3);
    assert_int_equal(dpi_vocabulary_count(v), 3);
    dpi_vocabulary_free(v);
    v = read_text(folder, "7 2\r\na 1 2\r\nb\t3 4 \r\n", 0); /* word2vec's first line */
    assert_int_equal(dpi_vocabulary_count(v), 2);
    assert_string_equal(dpi_vocabulary_word(v, 1), "b");
    dpi_vocabulary_free(v);
    refuse_text(folder, "", 0, "no word in it");
    refuse_text(folder, "a 1 2\nb 1\n", 10, "line 2");
    refuse_text(folder, "a 1 2\nb 1 2 3\n", 14, "line 2");
    refuse_text(folder, "a 1 x\n", 6, "line 1");
    refuse_text(folder, "a 1 2\n\nb 1 2\n", 13, "line 2");
    refuse_text(folder, "a 1 2\nb 1 inf\n", 14, "not finite");
    refuse_text(folder, "a 1 2\na 1 3\n", 12, "twice");
    refuse_text(folder, "a 1 2\nb 1\0 2\n", 13, "NUL");
    refuse_text(folder, "a 1 2\n", 6, "must be 2");
    remove_dir(folder);
}

static void test_distances_file(void **state) {
    (void)state;
    char folder[256], path[512], other[512];
    dpi_error err = {0};
    struct stat st;
    make_dir(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/distances", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    dpi_vocabulary *v = read_text(folder, VECTORS, 0), *w = read_text(folder, VECTORS, 0);
    dpi_vocabulary *fewer = read_text(folder, VECTORS, 6);
    assert_ok(dpi_vocabulary_measure(v, path, 1, &err), &err);
    assert_true(stat(path, &st) == 0 && st.st_size == 64 + 4 * 7 * 7);
    assert_ok(dpi_vocabulary_measure(w, path, 1, &err), &err); /* mapped */
    dpi_perturb_options o;
    dpi_certificate a, b;
    dpi_perturber *p, *q;
    dpi_perturb_options_init(&o);
    dpi_certificate_init(&a);
    dpi_certificate_init(&b);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    assert_ok(dpi_perturber_create(v, &o, &p, &err), &err);
    assert_ok(dpi_perturber_create(w, &o, &q, &err), &err);
    assert_ok(dpi_perturb_certify(p, &a, &err), &err);
    assert_ok(dpi_perturb_certify(q, &b, &err), &err);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(dpi_vocabulary_measure(fewer, path, 1, &err) == DPI_STATUS_FORMAT);
    assert_non_null(strstr(err.message, "other words or vectors"));
    assert_true(truncate(path, 100) == 0);
    dpi_vocabulary *again = read_text(folder, VECTORS, 0);
    assert_true(dpi_vocabulary_measure(again, path, 1, &err) == DPI_STATUS_FORMAT);
    write_file(other, "something else, longer than a header of sixty-four bytes is, yes", 64);
    assert_true(dpi_vocabulary_measure(again, other, 1, &err) == DPI_STATUS_FORMAT);
    assert_true(dpi_vocabulary_measure(again, folder, 1, &err) == DPI_STATUS_IO);
    assert_true(dpi_perturber_create(again, &o, &p, &err) == DPI_STATUS_STATE);
    dpi_perturber_free(q);
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    dpi_vocabulary_free(w);
    dpi_vocabulary_free(fewer);
    dpi_vocabulary_free(again);
    remove_dir(folder);
}

static void expect_words(const char *text, const char *expected) {
    char joined[512] = "";
    size_t n;
    for (size_t at = 0; dpi_word_next(text, strlen(text), &at, &n); at += n) {
        strcat(joined, "[");
        strncat(joined, text + at, n);
        strcat(joined, "]");
    }
    assert_string_equal(joined, expected);
}

static void test_words(void **state) {
    (void)state;
    expect_words("", "");
    expect_words(" \n\t ", "");
    expect_words("The cat sat.", "[The][cat][sat][.]");
    expect_words("don't re-use 3.14, 1,000; x.y", "[don't][re-use][3.14][,][1,000][;][x][.][y]");
    expect_words("\xc3\xa9t\xc3\xa9 (3)", "[\xc3\xa9t\xc3\xa9][(][3][)]");
    expect_words("a- -b 'c'", "[a][-][-][b]['][c][']");
    assert_true(dpi_word_is_number("3.14", 4) && dpi_word_is_number("7", 1));
    assert_false(dpi_word_is_number("7a", 2) || dpi_word_is_number(".", 1) ||
                 dpi_word_is_number("", 0));
    assert_true(dpi_word_is_stop("The", 3) && !dpi_word_is_stop("cat", 3));
}

/* What becomes of each word, by mechanism: d drawn, u unknown, n number, k kept, x dropped. */
static void expect_fates(const dpi_vocabulary *v, int32_t mechanism, const char *text,
                         const char *expected) {
    dpi_perturb_options o;
    dpi_perturber *p;
    dpi_error err = {0};
    const dpi_perturbed_word *words;
    size_t n;
    char fates[64] = "";
    dpi_perturb_options_init(&o);
    o.mechanism = mechanism;
    assert_ok(dpi_perturber_create(v, &o, &p, &err), &err);
    assert_ok(dpi_perturb(p, text, strlen(text), &words, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        strncat(fates, &"dunkx"[words[i].how], 1);
        const bool in = words[i].how == DPI_REPLACED_DRAWN || words[i].how == DPI_REPLACED_UNKNOWN;
        assert_true(in == (words[i].to >= 0) || words[i].how == DPI_REPLACED_KEPT);
        if (in)
            assert_string_equal(words[i].replacement, dpi_vocabulary_word(v, words[i].to));
    }
    assert_string_equal(fates, expected);
    dpi_perturber_free(p);
}

static void test_fates(void **state) {
    (void)state;
    char folder[256];
    dpi_error err = {0};
    make_dir(folder, sizeof folder);
    dpi_vocabulary *v = read_text(folder, VECTORS, 0);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    const char *text = "The DOG ran, zebra 7 12";
    expect_fates(v, DPI_MECHANISM_RANTEXT, text, "ddddxnn");
    expect_fates(v, DPI_MECHANISM_SANTEXT, text, "ddddudu");
    expect_fates(v, DPI_MECHANISM_CUSTEXT, text, "kdddxkk");
    expect_fates(v, DPI_MECHANISM_EXPONENTIAL, text, "ddddudu");
    expect_fates(v, DPI_MECHANISM_EXPONENTIAL, "", "");
    dpi_vocabulary_free(v);
    remove_dir(folder);
}

/* A model's tokens: the text is made of tokens of the vocabulary, and all of them are drawn. */
static void test_model(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    void *image;
    dpi_error err = {0};
    dpi_vocabulary *v;
    dpi_perturber *p;
    dpi_perturb_options o;
    const dpi_perturbed_word *words;
    size_t n;
    dpi_model *model = tiny_open(&spec, 1, &image);
    assert_ok(dpi_vocabulary_of_model(model, 40, &v, &err), &err);
    assert_int_equal(dpi_vocabulary_count(v), 40);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    assert_ok(dpi_perturber_create(v, &o, &p, &err), &err);
    assert_ok(dpi_perturb(p, "some text of words", 18, &words, &n, &err), &err);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_true(words[i].to >= 0 && words[i].to < 40);
    assert_true(strlen(dpi_perturbed_text(p)) > 0);
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files), cmocka_unit_test(test_distances_file),
        cmocka_unit_test(test_words), cmocka_unit_test(test_fates),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
