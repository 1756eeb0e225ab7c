/* test_perturb.c - vocabularies from files and models, the file of distances, the words of a text,
 * and what becomes of each. */
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/perturb/text_words.h"
#include "tests/pipeline/perturb/perturb_support.h"
#include "tests/support/tiny_model.h"

static const char VECTORS[] = "the 0 0\ncat 1 0\ndog 1 .5\nsat 0 2\nran .25 2\n7 3 3\n, 2 2\n";
static char folder[256];

SETUP { make_dir(folder, sizeof folder); }
TEARDOWN { remove_dir(folder); }

static dpi_status read_bytes(const char *text, size_t n_bytes, int32_t n_most, dpi_vocabulary **v) {
    write_file(path_in(folder, "vectors.txt"), text, n_bytes);
    return dpi_vocabulary_read(path_in(folder, "vectors.txt"), n_most, v, ERR);
}

static dpi_vocabulary *read_text(const char *text, int32_t n_most) {
    dpi_vocabulary *v;
    assert_ok(read_bytes(text, strlen(text), n_most, &v));
    return v;
}

TEST(test_files) {
    dpi_vocabulary *v = read_text(VECTORS, 0);
    assert_int_equal(dpi_vocabulary_count(v), 7);
    assert_int_equal(dpi_vocabulary_dim(v), 2);
    assert_string_equal(dpi_vocabulary_word(v, 3), "sat");
    assert_int_equal(dpi_vocabulary_find(v, "dog", 3), 2);
    assert_int_equal(dpi_vocabulary_find(v, "dog", 2), -1);
    assert_int_equal(dpi_vocabulary_find(v, "dogs", 4), -1);
    dpi_vocabulary_free(v);
    v = read_text(VECTORS, 3);
    assert_int_equal(dpi_vocabulary_count(v), 3);
    dpi_vocabulary_free(v);
    v = read_text("\xef\xbb\xbf" "7 2\r\na 1 2\r\nb\t3 4 \r\n", 0); /* word2vec's first line */
    assert_int_equal(dpi_vocabulary_count(v), 2);
    assert_string_equal(dpi_vocabulary_word(v, 1), "b");
    dpi_vocabulary_free(v);
    static const struct {
        const char *text;
        size_t n_bytes;
        const char *message;
    } refused[] = {
        {"", 0, "no word in it"},           {"a 1 2\nb 1\n", 10, "line 2"},
        {"a 1 2\nb 1 2 3\n", 14, "line 2"}, {"a 1 x\n", 6, "line 1"},
        {"a 1 2\n\nb 1 2\n", 13, "line 2"}, {"a 1 2\nb 1 inf\n", 14, "not finite"},
        {"a 1 2\na 1 3\n", 12, "twice"},    {"a 1 2\nb 1\0 2\n", 13, "NUL"},
        {"a 1 2\n", 6, "must be 2"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_true(read_bytes(refused[i].text, refused[i].n_bytes, 0, &v) != DPI_STATUS_OK);
        if (!strstr(ERR->message, refused[i].message))
            fail_msg("'%s' has no '%s'", ERR->message, refused[i].message);
    }
}

static dpi_perturber *perturber_of(const dpi_vocabulary *v, int32_t which) {
    const dpi_perturb_options o = mechanism(which, 0);
    dpi_perturber *p;
    assert_ok(dpi_perturber_create(v, &o, &p, ERR));
    return p;
}

TEST(test_distances_file) {
    static const char nothing[] =
        "something else, longer than a header of sixty-four bytes is, yes";
    const char *path = path_in(folder, "distances"), *other = path_in(folder, "other");
    const dpi_perturb_options o = mechanism(DPI_WORDS_EXPONENTIAL, 0);
    dpi_vocabulary *same[2], *fewer = read_text(VECTORS, 6), *again = read_text(VECTORS, 0);
    dpi_certificate c[2];
    dpi_perturber *p;
    struct stat st;
    for (int i = 0; i < 2; i++) { /* written, then mapped */
        same[i] = read_text(VECTORS, 0);
        assert_ok(dpi_vocabulary_measure(same[i], path, 1, ERR));
        assert_true(stat(path, &st) == 0 && st.st_size == 64 + 4 * 7 * 7);
        dpi_certificate_init(&c[i]);
        p = perturber_of(same[i], DPI_WORDS_EXPONENTIAL);
        assert_ok(dpi_perturb_certify(p, &c[i], ERR));
        dpi_perturber_free(p);
    }
    assert_memory_equal(&c[0], &c[1], sizeof c[0]);
    assert_error(dpi_vocabulary_measure(fewer, path, 1, ERR), FORMAT, "other words or vectors");
    assert_true(truncate(path, 100) == 0);
    assert_error(dpi_vocabulary_measure(again, path, 1, ERR), FORMAT, "");
    write_file(other, nothing, 64);
    assert_error(dpi_vocabulary_measure(again, other, 1, ERR), FORMAT, "");
    assert_error(dpi_vocabulary_measure(again, folder, 1, ERR), IO, "");
    assert_error(dpi_perturber_create(again, &o, &p, ERR), STATE, "");
    for (int i = 0; i < 2; i++)
        dpi_vocabulary_free(same[i]);
    dpi_vocabulary_free(fewer);
    dpi_vocabulary_free(again);
}

static void expect_words(const char *text, const char *expected) {
    char joined[512] = "";
    size_t n;
    for (size_t at = 0; dpi_word_next(text, strlen(text), &at, &n); at += n)
        strcat(strncat(strcat(joined, "["), text + at, n), "]");
    assert_string_equal(joined, expected);
}

TEST(test_words) {
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
static void expect_fates(const dpi_vocabulary *v, int32_t which, const char *text,
                         const char *expected) {
    dpi_perturber *p = perturber_of(v, which);
    const dpi_perturbed_word *words;
    size_t n;
    char fates[64] = "";
    assert_ok(dpi_perturb(p, text, strlen(text), &words, &n, ERR));
    for (size_t i = 0; i < n; i++) {
        strncat(fates, &"dunkx"[words[i].how], 1);
        const bool in = words[i].how == DPI_REPLACED_DRAWN || words[i].how == DPI_REPLACED_UNKNOWN;
        assert_true(in == (words[i].to >= 0) || words[i].how == DPI_REPLACED_KEPT);
        if (in)
            assert_string_equal(words[i].replacement, dpi_vocabulary_word(v, words[i].to));
    }
    assert_string_equal(fates, expected);
    char whole[256] = ""; /* the text is made of the replacements, each in its place */
    for (size_t i = 0; i < n; i++) {
        const bool kept = words[i].how == DPI_REPLACED_KEPT;
        const size_t n_whole = strlen(whole);
        snprintf(whole + n_whole, sizeof whole - n_whole, "%s%.*s",
                 n_whole > 0 && (kept || words[i].replacement[0]) ? " " : "",
                 kept ? (int)words[i].n_bytes : 200, kept ? words[i].word : words[i].replacement);
    }
    assert_string_equal(dpi_perturbed_text(p), whole);
    dpi_perturber_free(p);
}

TEST(test_fates) {
    static const char text[] = "The DOG ran, zebra 7 12";
    dpi_vocabulary *v = read_text(VECTORS, 0);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, ERR));
    expect_fates(v, DPI_WORDS_RANTEXT, text, "ddddxnn");
    expect_fates(v, DPI_WORDS_SANTEXT, text, "ddddudu");
    expect_fates(v, DPI_WORDS_CUSTEXT, text, "kdddxkk");
    expect_fates(v, DPI_WORDS_EXPONENTIAL, text, "ddddudu");
    expect_fates(v, DPI_WORDS_EXPONENTIAL, "", "");
    dpi_vocabulary_free(v);
}

/* A model's tokens: the text is made of tokens of the vocabulary, and all of them are drawn. */
TEST(test_model) {
    const tiny_spec spec = tiny_default();
    const dpi_perturbed_word *words;
    void *image;
    size_t n;
    dpi_model *model = tiny_open(&spec, 1, &image);
    dpi_vocabulary *v = vocabulary_of_model(model, 40);
    dpi_perturber *p = perturber_of(v, DPI_WORDS_EXPONENTIAL);
    assert_int_equal(dpi_vocabulary_count(v), 40);
    assert_ok(dpi_perturb(p, "some text of words", 18, &words, &n, ERR));
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_in_range(words[i].to, 0, 39);
    assert_true(strlen(dpi_perturbed_text(p)) > 0);
    dpi_perturber_free(p);
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
}
