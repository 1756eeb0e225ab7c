/* A classifier of texts. The oracles: what separates is known, liblinear's own programs read the
 * same rows (liblinear-train, where it is installed), and scikit-learn was given the same texts. */
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
             "cd '%s' && liblinear-train -q -s 0 -B 1 -c 1 -e 1e-4 train.svm model >/dev/null && "
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

/* "xx xx" of the texts "xx xx" and "XX": weights 2 (ln(3/3) + 1) of the word and ln(3/2) + 1 of the
 * pair, over their length. */
TEST(test_rows) {
    double first, second;
    int index[2];
    size_t n;
    OWN_TEXTS s =
        make_texts((const char *const[]){"xx xx", "XX"}, (const char *const[]){"a", "b"}, 2);
    write_rows(&s, &s, "rows");
    OWN_ARRAY(char) line = read_file(path_in(dir, "rows"), &n);
    assert_int_equal(sscanf(line, "1 %d:%lf %d:%lf", &index[0], &first, &index[1], &second), 4);
    assert_true(index[0] == 1 && index[1] == 2);
    const double x = 2, y = log(1.5) + 1, length = sqrt(x * x + y * y);
    assert_within(fmax(first, second), x / length, 1e-12);
    assert_within(fmin(first, second), y / length, 1e-12);
}

static uint32_t draw(uint32_t *state, uint32_t n) {
    *state = (*state * 1103515245u + 12345) % (1u << 31);
    return (*state >> 16) % n;
}

/* The n texts of classify_reference.py, with labels in turn. */
static eval_texts make_reference(uint32_t *state, int n) {
    static const char *const words[4][12] = {
        {"card", "Card!", "CARD", "arrive", "arrives,", "lost", "(post)", "Straße", "été"},
        {"transfer", "Transfer:", "pending", "pending.", "account", "Überweisung",
         "ÜBERWEISUNG,"},
        {"refund", "Refund?", "shop", "price_2", "price_2;", "10.50", "возврат", "ВОЗВРАТ!"},
        {"I", "a", "my", "My", "is", "not", "don't", "when", "When", "the", "--", "why?"}};
    static const uint32_t n_words[4] = {9, 7, 8, 12};
    static char text[150][256];
    const char *list[150], *label[150];
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        text[i][0] = '\0';
        for (uint32_t left = 4 + draw(state, 6); left > 0; left--) {
            uint32_t of = i % 3;
            if (draw(state, 4) != 0)
                of = draw(state, 4) == 0 ? draw(state, 3) : 3;
            strcat(strcat(text[i], words[of][draw(state, n_words[of])]), " ");
        }
        list[i] = text[i];
        label[i] = (const char *const[]){"a", "b", "c"}[i % 3];
    }
    return make_texts(list, label, (size_t)n);
}

/* Terms, rows, predictions and F1 are those of scikit-learn 1.9.1, one label against the rest;
 * where it learns the labels together, it is right about 119 of the texts. */
TEST(test_reference) {
    uint32_t state = 7;
    OWN_TEXTS train = make_reference(&state, 90);
    OWN_TEXTS test = make_reference(&state, 150);
    OWN_VOCABULARY v;
    OWN_ROWS r;
    eval_accuracy a;
    double sum = 0;
    int n = 0;
    assert_ok(eval_vocabulary_make(&v, &train, ERR));
    assert_ok(eval_rows_make(&v, &test, &r, ERR));
    for (int32_t i = 0; i < r.n; i++)
        for (const struct feature_node *node = r.at[i]; node->index > 0; node++, n++)
            sum += node->value;
    assert_int_equal(v.n, 264);
    assert_int_equal(n, 1151);
    assert_within(sum, 388.639909692535, 1e-9);
    assert_ok(eval_classify(&train, &test, &a, NULL, ERR));
    assert_near(a.accuracy * 150, 120);
    assert_within(a.macro_f1, 0.795883361921, 1e-9);
}

TEST(test_refusals) {
    OWN_TEXTS none = TEXTS("a", "b");
    OWN_TEXTS same =
        make_texts((const char *const[]){"a", "b"}, (const char *const[]){"x", "x"}, 2);
    eval_accuracy a;
    assert_error(eval_classify(&same, &same, &a, NULL, ERR), ARG, "found 1");
    assert_error(eval_classify(&none, &same, &a, NULL, ERR), ARG, "found 0");
}
