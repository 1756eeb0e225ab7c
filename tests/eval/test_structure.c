/* Texts of a form: what is JSON, what a grammar accepts, and distributions of fields that are
 * counted by hand. */
#include "eval/structure.h"
#include "tests/eval/eval_support.h"

#define OWN_STRUCTURE __attribute__((cleanup(eval_structure_free))) eval_structure

/* Texts with " for each ' in them. */
static eval_texts quoted(const char *const *text, int32_t n) {
    char *copy[128];
    for (int32_t i = 0; i < n; i++) {
        copy[i] = strdup(text[i]);
        for (char *c = copy[i]; (c = strchr(c, '\'')) != NULL;)
            *c = '"';
    }
    eval_texts s = make_texts((const char *const *)copy, NULL, (size_t)n);
    for (int32_t i = 0; i < n; i++)
        free(copy[i]);
    return s;
}

static eval_structure compare(const eval_texts *a, const eval_texts *b,
                              const dpi_grammar *grammar) {
    eval_structure s;
    assert_ok(eval_find_structure(a, b, grammar, &s, ERR));
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
    "{'dept':'heart','age':40,'at':{'city':'Rome'}}",
    "{'dept':'heart','age':50}",
    "{'dept':'skin','age':50,'tags':[1,2]}",
    "{'dept':'skin','age':50,'age':51}", /* twice: no JSON here */
    "42",
    "Dear patient",
};
static const char *const real[] = {
    "{'dept':'heart','age':40,'at':{'city':'Rome'}}",
    "{'dept':'bone','age':50,'at':{'city':'Bonn'},'tags':[]}",
    "{'dept':'skin','age':null,'at':{}}",
    "{'dept':'skin'}",
};

/* Three synthetic objects, four real ones: absent fields count as a value. */
TEST(test_counts) {
    OWN_TEXTS a = quoted(synthetic, 6);
    OWN_TEXTS b = quoted(real, 4);
    OWN_STRUCTURE s = compare(&a, &b, NULL);
    assert_true(s.n_json[0] == 4 && s.n_objects[0] == 3);
    assert_true(s.n_json[1] == 4 && s.n_objects[1] == 4);
    assert_int_equal(s.n_fields, 5); /* age, at, at.city, dept, tags[] */
    const eval_field *dept = field(&s, "dept"), *age = field(&s, "age");
    assert_int_equal(dept->kind, EVAL_FIELD_VALUES);
    /* heart 2/3 and 1/4, skin 1/3 and 1/2, bone 0 and 1/4 */
    assert_near(dept->tv, (5.0 / 12 + 1.0 / 6 + 1.0 / 4) / 2);
    assert_near(share_of(dept, 0, "heart"), 2.0 / 3);
    assert_near(share_of(dept, 1, "bone"), .25);
    /* 40: 1/3 and 1/4; 50: 2/3 and 1/4; null: 0 and 1/4; absent: 0 and 1/4 */
    assert_near(age->tv, (1.0 / 12 + 5.0 / 12 + .25 + .25) / 2);
    assert_near(age->present[0], 1), assert_near(age->present[1], .75);
    /* Rome: 1/3 and 1/4; Bonn: 0 and 1/4; absent: 2/3 and 1/2 */
    assert_near(field(&s, "at.city")->tv, (1.0 / 12 + .25 + 1.0 / 6) / 2);
    assert_near(share_of(field(&s, "at"), 1, "{}"), .25);
    /* 2: 1/3 and 0; 0: 0 and 1/4; absent: 2/3 and 3/4 */
    assert_near(field(&s, "tags[]")->tv, (1.0 / 3 + .25 + 1.0 / 12) / 2);
    double sum = 0;
    for (int32_t i = 0; i < s.n_fields; i++)
        sum += s.field[i].tv;
    assert_near(s.tv_mean, sum / 5);
}

/* Texts of their own, and a grammar's: the same number as by hand. */
TEST(test_grammar) {
    static const char rules[] = "root ::= \"{\\\"dept\\\":\\\"\" [a-z]+ \"\\\"\" .* \"}\"";
    OWN_TEXTS a = quoted(synthetic, 6);
    OWN_TEXTS b = quoted(real, 4);
    dpi_grammar *grammar;
    assert_ok(dpi_grammar_parse(rules, strlen(rules), &grammar, ERR));
    OWN_STRUCTURE s = compare(&a, &b, grammar);
    assert_true(s.n_accepted[0] == 4 && s.n_accepted[1] == 4);
    dpi_grammar_free(grammar);
}

enum { N = 100 };

/* Texts {"x":number,"t":"words"}, numbers from `first` on; the words do not repeat. */
static eval_texts numbers(int32_t first) {
    static char text[N][160];
    const char *list[N];
    for (int32_t i = 0; i < N; i++) {
        char *at = text[i] + sprintf(text[i], "{'x':%d,'t':'w%d", first + i, first + i);
        for (int32_t w = 0; w < i % 21; w++)
            at += sprintf(at, " w");
        sprintf(at, "'}");
        list[i] = text[i];
    }
    return quoted(list, N);
}

/* Numbers 0..99 and 50..149: bins of 7.45 from 0 to 149. Words 1..21, of which each is a text. */
TEST(test_bins) {
    OWN_TEXTS a = numbers(0);
    OWN_TEXTS b = numbers(50);
    double share[2][EVAL_FIELD_BINS] = {{0}}, tv = 0;
    for (int32_t i = 0; i < N; i++) {
        share[0][(int32_t)(i / 7.45)] += .01;
        const int32_t bin = (int32_t)((50 + i) / 7.45);
        share[1][bin < EVAL_FIELD_BINS ? bin : EVAL_FIELD_BINS - 1] += .01;
    }
    for (int32_t i = 0; i < EVAL_FIELD_BINS; i++)
        tv += fabs(share[0][i] - share[1][i]) / 2;
    OWN_STRUCTURE s = compare(&a, &b, NULL);
    assert_int_equal(field(&s, "x")->kind, EVAL_FIELD_NUMBERS);
    assert_near(field(&s, "x")->tv, tv);
    assert_true(field(&s, "x")->present[0] == 1); /* no sum of a hundred .01 */
    assert_int_equal(field(&s, "t")->kind, EVAL_FIELD_WORDS);
    assert_near(field(&s, "t")->tv, 0);
    assert_string_equal(field(&s, "t")->bin[0], "1 .. 2");
}

/* Long names and values are cut where a character ends, many fields to the most frequent ones. */
TEST(test_limits) {
    static char text[8192];
    char *at = text + sprintf(text, "{'common':1,'");
    for (int i = 0; i < 200; i++)
        at += sprintf(at, "\xc3\xa4");
    at += sprintf(at, "':'");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "x\xe2\x82\xac");
    at += sprintf(at, "'");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, ",'f%d':%d", i, i);
    sprintf(at, "}");
    OWN_TEXTS a = quoted((const char *const[]){text}, 1);
    OWN_TEXTS b = quoted((const char *const[]){"{'common':1,'f99':2,'f98':3}"}, 1);
    OWN_STRUCTURE s = compare(&a, &b, NULL);
    assert_int_equal(s.n_fields, EVAL_FIELDS_MAX);
    assert_near(field(&s, "common")->tv, 0);
    assert_near(field(&s, "f98")->tv, 1);
    /* 63 bytes end inside the 21st of these */
#define FIVE "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
    OWN_TEXTS c = TEXTS("{\"k\":\"" FIVE FIVE FIVE FIVE "x\xe2\x82\xac\xe2\x82\xac\"}");
    OWN_STRUCTURE cut = compare(&c, &b, NULL);
    const char *bin = field(&cut, "k")->bin[0];
    assert_int_equal(strlen(bin), 61);
    assert_int_equal(bin[60], 'x');
}
