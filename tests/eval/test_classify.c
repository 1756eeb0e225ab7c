/* A classifier of texts. The oracle: what separates is known, and liblinear's own programs read the
 * same rows (liblinear-train, where it is installed). */
#include "eval/classify.h"

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
    assert_ok(eval_write_rows(&train, &train, path_in(dir, "train.svm"), ERR));
    assert_ok(eval_write_rows(&train, &test, path_in(dir, "test.svm"), ERR));
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
    assert_ok(eval_write_rows(&s, &s, path_in(dir, "rows"), ERR));
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
