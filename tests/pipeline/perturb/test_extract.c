/* Extraction: prompts that are filled, documents that are cut at tokens, texts that are those of
 * the session by hand, ends. */
#include "dpinfer/extract.h"
#include "tests/support/support.h"

static dpi_model *model;
static const char document[] = "Take two tablets with water. Come back in five days.";

static void check_filled(const char *prompt, const char *generation, const char *wanted) {
    char *text;
    assert_ok(dpi_extract_fill(prompt, "D", generation, &text, ERR));
    assert_string_equal(text, wanted);
    dpi_private_free(text);
}

TEST(test_fill) {
    check_filled("{document}-{generation}.{document}", "{document}", "D-{document}.D");
    check_filled("{generation}{doc", NULL, "{generation}{doc");
    check_filled("", "G", "");
    assert_non_null(strstr(dpi_extract_prompt_remote(), "{document}"));
    assert_non_null(strstr(dpi_extract_prompt_local(), "{generation}"));
}

/* A cut text is a beginning of the document, whose tokens are its first ones. */
TEST(test_cut) {
    int32_t all[64], few[64];
    size_t n_all, n_few;
    char *text;
    assert_ok(dpi_tokenize(model, document, strlen(document), 0, all, 64, &n_all, ERR));
    for (int32_t n = 1; n <= (int32_t)n_all; n += 3) {
        assert_ok(dpi_extract_cut(model, document, strlen(document), n, &text, ERR));
        assert_int_equal(strncmp(document, text, strlen(text)), 0);
        assert_ok(dpi_tokenize(model, text, strlen(text), 0, few, 64, &n_few, ERR));
        assert_int_equal(n_few, n);
        assert_memory_equal(few, all, n_few * sizeof *few);
        dpi_private_free(text);
    }
    for (int32_t n = 0; n <= 1000; n += 1000) { /* all of it */
        assert_ok(dpi_extract_cut(model, document, strlen(document), n, &text, ERR));
        assert_string_equal(text, document);
        dpi_private_free(text);
    }
}

static dpi_extract *open_extract(int32_t n_tokens, int32_t n_ctx) {
    dpi_extract *x = NULL;
    dpi_extract_options o;
    dpi_extract_options_init(&o);
    o.model = model, o.n_tokens = n_tokens, o.session.n_ctx = n_ctx;
    assert_ok(dpi_extract_open(&o, &x, ERR));
    return x;
}

static int32_t count(void *user) { return --*(int32_t *)user == 0; }

/* At most so many tokens, none of which is longer than 16 bytes; one call for each and the end. */
TEST(test_write) {
    enum { N_TOKENS = 8 };
    dpi_extract *x = open_extract(N_TOKENS, 256);
    for (int i = 0; i < 3; i++) { /* the session can be used again */
        int32_t left = INT32_MAX;
        char *text = NULL;
        assert_ok(dpi_extract_write(x, document, count, &left, &text, ERR));
        assert_non_null(text);
        assert_true(strlen(text) <= 16 * N_TOKENS);
        assert_true(INT32_MAX - left >= 1 && INT32_MAX - left <= 1 + N_TOKENS + 1);
        dpi_private_free(text);
        left = 2;
        assert_error(dpi_extract_write(x, document, count, &left, &text, ERR), CANCELLED, "");
    }
    dpi_extract_free(x);
}

TEST(test_room) {
    dpi_extract_options o;
    dpi_extract *x = open_extract(30, 32);
    char unset, *text = &unset;
    assert_ok(dpi_extract_write(x, document, NULL, NULL, &text, ERR));
    assert_null(text); /* a prompt of more than two tokens */
    dpi_extract_free(x);
    dpi_extract_options_init(&o);
    o.model = model, o.session.n_ctx = 32, o.n_tokens = 32;
    assert_error(dpi_extract_open(&o, &x, ERR), ARG,
                 "T: found '32', allowed is less than the context of 32 tokens");
    o.struct_size++;
    assert_error(dpi_extract_open(&o, &x, ERR), ARG, "struct_size");
}

SETUP { assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR)); }
TEARDOWN { dpi_model_close(model); }
