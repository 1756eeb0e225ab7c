/* A classifier of texts. The oracle: what separates is known, and liblinear's own programs read the
 * same rows (liblinear-train, where it is installed). */
#include "eval/classify.h"
#include "eval/labelled_rows.h"

#include "tests/eval/eval_support.h"

static char dir[256];

SETUP { make_dir(dir, sizeof dir); }

TEARDOWN { remove_dir(dir); }

TEST(test_known) {
    uint64_t seed = 5;
    OWN_TEXTS train = make_clear(&seed, 9, -1);
    OWN_TEXTS test = make_clear(&seed, 9, -1);
    eval_accuracy a;
    assert_ok(eval_classify(&train, &test, &a, NULL, ERR));
    assert_true(a.accuracy == 1);
    assert_near(a.macro_f1, 1);
    assert_near(a.majority, 1.0 / 3);
    assert_int_equal(a.n_labels, 3);
    assert_int_equal(a.n_test, N_CLEAR);
}

/* The rows of texts as liblinear's own program reads them: "label index:value ...", labels from 1
 * in the order of their names. */
static void write_rows(const eval_texts *train, const eval_texts *texts, const char *name) {
    eval_vocabulary v;
    eval_rows r = {0};
    FILE *f = fopen(path_in(dir, name), "w");
    assert_non_null(f);
    assert_ok(eval_vocabulary_make(&v, train, ERR));
    assert_ok(eval_rows_make(&v, texts, &r, ERR));
    for (int32_t i = 0; i < r.n; i++) {
        fprintf(f, "%g", r.label[i]);
        for (const struct feature_node *node = r.at[i]; node->index > 0; node++)
            fprintf(f, " %d:%.17g", node->index, node->value);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    eval_rows_free(&r);
    eval_vocabulary_free(&v);
}

/* The share that liblinear-predict prints. */
static double accuracy_of_program(void) {
    char command[1024], line[256];
    double accuracy = NAN;
    snprintf(command, sizeof command,
             "cd '%s' && liblinear-train -q -s 2 -c 1 -e .01 train.svm model >/dev/null && "
             "liblinear-predict test.svm model out",
             dir);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Accuracy = %lf", &accuracy);
    if (f)
        pclose(f);
    return accuracy / 100;
}

TEST(test_program) {
    uint64_t seed = 6;
    eval_accuracy a;
    if (system("command -v liblinear-train >/dev/null") != 0)
        skip();
    OWN_TEXTS train = make_clear(&seed, 1, -1);
    OWN_TEXTS test = make_clear(&seed, 1, -1);
    write_rows(&train, &train, "train.svm");
    write_rows(&train, &test, "test.svm");
    assert_ok(eval_classify(&train, &test, &a, NULL, ERR));
    assert_true(a.accuracy > .4 && a.accuracy < 1);
    assert_within(a.accuracy, accuracy_of_program(), 1e-4);
}

/* "x x y" of the texts "x x y" and "x": weights 2 (ln(3/3) + 1) and ln(3/2) + 1, over their
 * length. */
TEST(test_rows) {
    double first, second;
    int index[2];
    size_t n;
    OWN_TEXTS s =
        make_texts((const char *const[]){"x x y", "x"}, (const char *const[]){"a", "b"}, 2);
    write_rows(&s, &s, "rows");
    OWN_ARRAY(char) line = read_file(path_in(dir, "rows"), &n);
    assert_int_equal(sscanf(line, "1 %d:%lf %d:%lf", &index[0], &first, &index[1], &second), 4);
    assert_true(index[0] == 1 && index[1] == 2);
    const double x = 2, y = log(1.5) + 1, length = sqrt(x * x + y * y);
    assert_within(fmax(first, second), x / length, 1e-12);
    assert_within(fmin(first, second), y / length, 1e-12);
}

TEST(test_refusals) {
    OWN_TEXTS none = TEXTS("a", "b");
    OWN_TEXTS same =
        make_texts((const char *const[]){"a", "b"}, (const char *const[]){"x", "x"}, 2);
    eval_accuracy a;
    assert_error(eval_classify(&same, &same, &a, NULL, ERR), ARG, "found 1");
    assert_error(eval_classify(&none, &same, &a, NULL, ERR), ARG, "found 0");
}
