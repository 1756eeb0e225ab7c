/* Texts of a form: what is JSON, what a grammar accepts, and distributions of fields that are
 * counted by hand. */
#include "eval/structure.h"
#include "tests/support/support.h"

#include <math.h>

static eval_texts made(const char *const *text, int32_t n) {
    eval_texts s;
    dpi_error err;
    assert_ok(eval_texts_make(text, NULL, n, &s, &err), &err);
    return s;
}

static const eval_field *field(const eval_structure *s, const char *name) {
    for (int32_t i = 0; i < s->n_fields; i++)
        if (strcmp(s->field[i].name, name) == 0)
            return &s->field[i];
    fail_msg("no field %s", name);
    return NULL;
}

static double share_of(const eval_field *f, int32_t set, const char *bin) {
    for (int32_t b = 0; b < f->n_bins; b++)
        if (strcmp(f->bin[b], bin) == 0)
            return f->share[set][b];
    return 0;
}

static const char *const synthetic[] = {
    "{\"dept\":\"heart\",\"age\":40,\"at\":{\"city\":\"Rome\"}}",
    "{\"dept\":\"heart\",\"age\":50}",
    "{\"dept\":\"skin\",\"age\":50,\"tags\":[1,2]}",
    "{\"dept\":\"skin\",\"age\":50,\"age\":51}", /* twice: no JSON here */
    "42",
    "Dear patient",
};
static const char *const real[] = {
    "{\"dept\":\"heart\",\"age\":40,\"at\":{\"city\":\"Rome\"}}",
    "{\"dept\":\"bone\",\"age\":50,\"at\":{\"city\":\"Bonn\"},\"tags\":[]}",
    "{\"dept\":\"skin\",\"age\":null,\"at\":{}}",
    "{\"dept\":\"skin\"}",
};

/* Three synthetic objects, four real ones: absent fields count as a value. */
static void test_counts(void **state) {
    (void)state;
    eval_texts a = made(synthetic, 6), b = made(real, 4);
    eval_structure s;
    dpi_error err;
    assert_ok(eval_find_structure(&a, &b, NULL, &s, &err), &err);
    assert_int_equal(s.n_json[0], 4);
    assert_int_equal(s.n_objects[0], 3);
    assert_int_equal(s.n_json[1], 4);
    assert_int_equal(s.n_objects[1], 4);
    assert_int_equal(s.n_fields, 5); /* age, at, at.city, dept, tags[] */
    const eval_field *dept = field(&s, "dept");
    assert_int_equal(dept->kind, EVAL_FIELD_VALUES);
    /* heart 2/3 and 1/4, skin 1/3 and 1/2, bone 0 and 1/4 */
    assert_true(fabs(dept->tv - (5.0 / 12 + 1.0 / 6 + 1.0 / 4) / 2) < 1e-12);
    assert_true(fabs(share_of(dept, 0, "heart") - 2.0 / 3) < 1e-12);
    assert_true(fabs(share_of(dept, 1, "bone") - .25) < 1e-12);
    const eval_field *age = field(&s, "age");
    /* 40: 1/3 and 1/4; 50: 2/3 and 1/4; null: 0 and 1/4; absent: 0 and 1/4 */
    assert_true(fabs(age->tv - (1.0 / 12 + 5.0 / 12 + .25 + .25) / 2) < 1e-12);
    assert_true(fabs(age->present[0] - 1) < 1e-12 && fabs(age->present[1] - .75) < 1e-12);
    /* Rome: 1/3 and 1/4; Bonn: 0 and 1/4; absent: 2/3 and 1/2 */
    assert_true(fabs(field(&s, "at.city")->tv - (1.0 / 12 + .25 + 1.0 / 6) / 2) < 1e-12);
    assert_true(fabs(share_of(field(&s, "at"), 1, "{}") - .25) < 1e-12);
    /* 2: 1/3 and 0; 0: 0 and 1/4; absent: 2/3 and 3/4 */
    assert_true(fabs(field(&s, "tags[]")->tv - (1.0 / 3 + .25 + 1.0 / 12) / 2) < 1e-12);
    double sum = 0;
    for (int32_t i = 0; i < s.n_fields; i++)
        sum += s.field[i].tv;
    assert_true(fabs(s.tv_mean - sum / 5) < 1e-12);
    eval_structure_free(&s);
    eval_texts_free(&a);
    eval_texts_free(&b);
}

/* Texts of their own, and a grammar's: the same number as by hand. */
static void test_grammar(void **state) {
    (void)state;
    static const char rules[] = "root ::= \"{\\\"dept\\\":\\\"\" [a-z]+ \"\\\"\" .* \"}\"";
    eval_texts a = made(synthetic, 6), b = made(real, 4);
    dpi_grammar *grammar;
    eval_structure s;
    dpi_error err;
    assert_ok(dpi_grammar_parse(rules, strlen(rules), &grammar, &err), &err);
    assert_ok(eval_find_structure(&a, &b, grammar, &s, &err), &err);
    assert_int_equal(s.n_accepted[0], 4);
    assert_int_equal(s.n_accepted[1], 4);
    eval_structure_free(&s);
    dpi_grammar_free(grammar);
    eval_texts_free(&a);
    eval_texts_free(&b);
}

enum { N = 100 };

/* n texts {"x":number,"t":"words"}, numbers from `first` on; the words do not repeat. */
static eval_texts numbers(int32_t first, int32_t n, char text[N][160]) {
    const char *list[N];
    for (int32_t i = 0; i < n; i++) {
        int at = snprintf(text[i], sizeof text[i], "{\"x\":%d,\"t\":\"w%d", first + i, first + i);
        for (int32_t w = 0; w < i % 21; w++)
            at += snprintf(text[i] + at, sizeof text[i] - (size_t)at, " w");
        snprintf(text[i] + at, sizeof text[i] - (size_t)at, "\"}");
        list[i] = text[i];
    }
    return made(list, n);
}

/* Numbers 0..99 and 50..149: bins of 7.45 from 0 to 149. Words 1..21, of which each is a text. */
static void test_bins(void **state) {
    (void)state;
    static char text[2][N][160];
    eval_texts a = numbers(0, N, text[0]), b = numbers(50, N, text[1]);
    double share[2][EVAL_FIELD_BINS] = {{0}}, tv = 0;
    eval_structure s;
    dpi_error err;
    for (int32_t i = 0; i < N; i++) {
        share[0][(int32_t)(i / 7.45)] += .01;
        const int32_t bin = (int32_t)((50 + i) / 7.45);
        share[1][bin < EVAL_FIELD_BINS ? bin : EVAL_FIELD_BINS - 1] += .01;
    }
    for (int32_t i = 0; i < EVAL_FIELD_BINS; i++)
        tv += fabs(share[0][i] - share[1][i]) / 2;
    assert_ok(eval_find_structure(&a, &b, NULL, &s, &err), &err);
    assert_int_equal(field(&s, "x")->kind, EVAL_FIELD_NUMBERS);
    assert_true(fabs(field(&s, "x")->tv - tv) < 1e-12);
    assert_int_equal(field(&s, "t")->kind, EVAL_FIELD_WORDS);
    assert_true(field(&s, "t")->tv < 1e-12);
    assert_string_equal(field(&s, "t")->bin[0], "1 .. 2");
    eval_structure_free(&s);
    eval_texts_free(&a);
    eval_texts_free(&b);
}

/* Long names and values are cut where a character ends, many fields to the most frequent ones. */
static void test_limits(void **state) {
    (void)state;
    enum { SIZE = 8192 };
    static char text[2][SIZE];
    int at = snprintf(text[0], SIZE, "{\"common\":1,\"");
    for (int i = 0; i < 200; i++)
        at += snprintf(text[0] + at, SIZE - (size_t)at, "\xc3\xa4");
    at += snprintf(text[0] + at, SIZE - (size_t)at, "\":\"");
    for (int i = 0; i < 100; i++)
        at += snprintf(text[0] + at, SIZE - (size_t)at, "x\xe2\x82\xac");
    at += snprintf(text[0] + at, SIZE - (size_t)at, "\"");
    for (int i = 0; i < 100; i++)
        at += snprintf(text[0] + at, SIZE - (size_t)at, ",\"f%d\":%d", i, i);
    snprintf(text[0] + at, SIZE - (size_t)at, "}");
    snprintf(text[1], SIZE, "{\"common\":1,\"f99\":2,\"f98\":3}");
    eval_texts a = made((const char *const[]){text[0]}, 1);
    eval_texts b = made((const char *const[]){text[1]}, 1);
    eval_structure s;
    dpi_error err;
    assert_ok(eval_find_structure(&a, &b, NULL, &s, &err), &err);
    assert_int_equal(s.n_fields, EVAL_FIELDS_MAX);
    assert_true(fabs(field(&s, "common")->tv) < 1e-12);
    assert_true(fabs(field(&s, "f98")->tv - 1) < 1e-12);
    eval_structure_free(&s);
    eval_texts_free(&a);
    a = made((const char *const[]){"{\"k\":\"" /* 63 bytes end inside the 21st of these */
                                   "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                                   "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                                   "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                                   "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                                   "x\xe2\x82\xac\xe2\x82\xac\"}"}, 1);
    assert_ok(eval_find_structure(&a, &b, NULL, &s, &err), &err);
    const char *bin = field(&s, "k")->bin[0];
    assert_int_equal(strlen(bin), 61);
    assert_int_equal(bin[60], 'x');
    eval_structure_free(&s);
    eval_texts_free(&a);
    eval_texts_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
