/* Key words beside steering vectors: what a unit says of public words, in the same clipped vector,
 * under the same noise; those that tell a label from the others, in the file. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "dpinfer/finetune.h"
#include "dpinfer/memory.h"
#include "tests/pipeline/steering.h"

/* In two texts or more, and no stop words or numbers: card (4), fee (3), lost (2), paid (2). */
#define PUBLIC                                                                                     \
    "kind,text\nx,Card fee. A card!\nx,the CARD 12 fee\ny,lost card 12 paid the\n"                 \
    "y,lost; card -- paid fee once\ny,alone in one text\n"
#define RECORDS                                                                                    \
    "who,kind,text\na,x,Fee fee card or nothing known\nb,y,lost\nc,x,no word of these\nd,y,\n"     \
    "a,x,Lost. the paid-for 12\ne,other,fee fee\n"
/* Ten of each kind, who all say the same. */
#define ALIKE(who)                                                                                 \
    who "1,x,fee card\n" who "2,y,lost paid\n" who "3,x,fee card\n" who "4,y,lost paid\n"
#define MANY ALIKE("a") ALIKE("b") ALIKE("c") ALIKE("d") ALIKE("e")
enum { CARD, FEE, LOST, PAID, N_KNOWN, N_WORDS = 6 };
static const char *const NAMES[] = {"card", "fee", "lost", "paid"};
static const double PART = .6; /* of C, the words of a unit: docs/results.md */

static dpi_records *of_kinds(const char *name, const char *text, bool units) {
    DEFAULTS(dpi_records_options, o);
    o.unit_field = units ? "who" : NULL, o.label_field = "kind";
    return read_records(name, text, &o);
}

static dpi_steer_options with_words(const dpi_records *records, const dpi_records *texts) {
    static const char *const kinds[] = {"x", "y"};
    dpi_steer_options o = say_options(records);
    o.instruction = (dpi_bytes){"say {label}", 11}, o.public_texts = texts;
    o.labels = kinds, o.n_labels = 2;
    o.sigma = 0, o.epsilon = INFINITY, o.n_positions = 4 * POSITIONS, o.n_words = N_WORDS;
    return o;
}

/* Words [2, N_WORDS] of a sum. */
static const int64_t *words_of(const dpi_steer *s) { return s->sum + s->n_vectors; }

static void expect_about(int64_t found, double wanted) {
    assert_true(fabs((double)found - wanted) <= 1);
}

TEST(test_vocabulary) {
    static const int32_t n_texts[] = {4, 3, 2, 2};
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    OWN(dpi_steer) s = prepared(&o);
    assert_int_equal(s->n_key_words, N_KNOWN);
    for (int i = 0; i < N_KNOWN; i++) {
        assert_string_equal(s->key_words[i].name, NAMES[i]);
        assert_int_equal(s->key_words[i].n_texts, n_texts[i]);
        assert_true(fabs(s->key_words[i].weight - log(5. / n_texts[i])) < 1e-12);
    }
    o.n_words = 3; /* those of most texts, and of as many the first ones */
    OWN(dpi_steer) fewer = prepared(&o);
    assert_int_equal(fewer->n_key_words, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(fewer->key_words[i].name, NAMES[i]);
}

/* Each record says a word once, a unit all of its records; it is as long as it may be, in the place
 * of its label. What says nothing, is null or has another label adds nothing. */
TEST(test_units) {
    const double one = PART * (1 << DPI_GRADIENT_SHIFT), card = log(5. / 4), fee = log(5. / 3);
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    OWN(dpi_steer) s = released(&o);
    const int64_t *x = words_of(s), *y = x + N_WORDS;
    const double lost = log(5. / 2), length = sqrt(card * card + fee * fee + lost * lost);
    expect_about(x[CARD], one * card / length);
    expect_about(x[FEE], one * fee / length);
    expect_about(x[LOST], one * lost / length); /* "paid-for" is another word */
    assert_int_equal(x[PAID], 0);
    expect_about(y[LOST], one);
    for (int i = 0; i < N_WORDS; i++) {
        assert_true(i == LOST || y[i] == 0);
        assert_true(i < N_KNOWN || x[i] == 0);
    }
    /* What the file has of it: weights, and means of units that are 1 long, as many as pay. */
    assert_string_equal(s->vocabulary, "card fee lost paid");
    for (int i = 0; i < N_KNOWN; i++) {
        assert_true(fabs((double)s->said[i] - s->key_words[i].weight) < 1e-6);
        const double of_x = (double)x[i] / one / dpi_steer_units(s, 0);
        assert_true(fabs((double)s->said[N_KNOWN + i] - of_x) < 1e-5);
        const double of_y = (double)y[i] / one / dpi_steer_units(s, 1);
        assert_true(fabs((double)s->said[2 * N_KNOWN + i] - of_y) < 1e-5);
    }
}

/* Words leave directions as they are where these are not as long as they may be beside them. */
TEST(test_directions) {
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    o.clip = 1e3;
    OWN(dpi_steer) s = released(&o);
    o.n_words = 0;
    OWN(dpi_steer) plain = released(&o);
    assert_int_equal(s->n, plain->n + 2 * N_WORDS);
    assert_int_equal(plain->n, 2 * N_EMBD);
    assert_memory_equal(s->sum, plain->sum, (size_t)plain->n * sizeof *s->sum);
    o.n_words = N_WORDS, o.clip = 1;
    OWN(dpi_steer) clipped = released(&o); /* words are always as long as they may be */
    for (int i = 0; i < 2 * N_WORDS; i++)
        expect_about(words_of(s)[i], (double)words_of(clipped)[i]);
    assert_null(dpi_steer_words(plain));
    /* Where all are, the vectors are as long as without words, for less of the clip. */
    o.clip = 1e-3;
    OWN(dpi_steer) with = released(&o);
    o.n_words = 0;
    OWN(dpi_steer) without = released(&o);
    double most = 0, off = 0;
    for (int i = 0; i < 2 * N_EMBD; i++) {
        most = fmax(most, fabs((double)without->vectors[i]));
        off = fmax(off, fabs((double)with->vectors[i] - (double)without->vectors[i]));
    }
    assert_true(most > 0 && off < 1e-4 * most);
}

/* A unit that comes moves the sum by at most D, with all that it has; its direction by the part
 * that is left. */
TEST(test_moves) {
    OWN(dpi_records) with = of_kinds("w.csv", "who,kind,text\na,x,fee card\nb,y,lost\n", true);
    OWN(dpi_records) without = of_kinds("o.csv", "who,kind,text\na,x,\nb,y,lost\n", true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(with, texts);
    o.clip = 1e-3;
    OWN(dpi_steer) s = released(&o);
    o.records = without;
    OWN(dpi_steer) less = released(&o);
    double direction = 0, words = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double square = pow((double)(s->sum[i] - less->sum[i]), 2);
        *(i < s->n_vectors ? &direction : &words) += square;
    }
    const double unit = 1 << DPI_GRADIENT_SHIFT;
    assert_true(sqrt(direction + words) <= (double)dpi_gradient_bound(s->n));
    assert_true(fabs(sqrt(words) / unit - PART) < 1e-4);
    assert_true(fabs(sqrt(direction) / unit - sqrt(1 - PART * PART)) < 1e-4);
}

/* Of each label those that its records say more often than those of others, the most telling first.
 * The file has them, and its claim says so. */
TEST(test_chosen) {
    OWN(dpi_records) records = of_kinds(
        "r.csv", "who,kind,text\na,x,fee\nb,x,fee card\nc,x,card\nd,y,lost card\ne,y,paid\n", true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    char path[300], *found = NULL;
    dpi_steer_options o = with_words(records, texts);
    OWN(dpi_steer) s = released(&o);
    assert_string_equal(dpi_steer_words(s), "fee card\npaid lost");
    assert_string_equal(dpi_steer_label(s, 1), "y");
    assert_null(dpi_steer_label(s, 2));
    assert_null(dpi_steer_label(s, -1));
    o.seeded = 0, o.epsilon = 0, o.sigma = .1; /* noise that two records are hardly above */
    OWN(dpi_steer) noisy = released(&o);
    snprintf(path, sizeof path, "%s", path_in(dir, "words.gguf"));
    const dpi_claim claim = written(noisy, path);
    assert_true(dpi_claim_value(&claim.parts[0], "words") == N_WORDS);
    assert_true(dpi_claim_value(&claim.parts[0], "numbers") == 2 * N_EMBD);
    assert_ok(dpi_finetune_read_words(path, &found, ERR));
    assert_string_equal(found, dpi_steer_words(noisy));
    free(found);
    o.n_words = 0;
    OWN(dpi_steer) plain = released(&o);
    written(plain, path);
    assert_ok(dpi_finetune_read_words(path, &found, ERR));
    assert_null(found);
}

/* What only the noise says is given to nobody: of 20 labels' words with noise of a thousand units
 * none is 3.3 deviations above, but for one of 2,000. */
TEST(test_noise) {
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    double square = 0;
    int n = 0, n_chosen = 0;
    o.epsilon = 0, o.sigma = 1000;
    for (o.seed = 0; o.seed < 40; o.seed++) {
        OWN(dpi_steer) s = released(&o);
        const double deviation = o.sigma * (double)dpi_gradient_bound(s->n);
        for (int i = 0; i < 2 * N_WORDS; i++, n++)
            square += pow((double)words_of(s)[i] / deviation, 2);
        n_chosen += strcmp(dpi_steer_words(s), "\n") != 0;
    }
    assert_true(n_chosen <= 2);
    assert_true(fabs(square / n - 1) < .4); /* 480 squares: off by .4 once in 10^9, of a seed */
}

/* One label has nothing to be told from: what its records say. A line may be empty, in a file, too.
 */
TEST(test_one_label) {
    static const char *const x[] = {"x"};
    OWN(dpi_records) records = of_kinds("r.csv", "who,kind,text\na,x,card\nb,x,card fee\n", true);
    OWN(dpi_records) texts = of_kinds("t.csv", "kind,text\nx,card fee\nx,fee\nx,a card\n", false);
    char path[300], *found = NULL;
    dpi_steer_options o = with_words(records, texts);
    o.labels = x, o.n_labels = 1;
    OWN(dpi_steer) s = released(&o);
    assert_string_equal(dpi_steer_words(s), "card fee");
    o.epsilon = 0, o.sigma = 1000; /* of a seed: noise alone seldom steers */
    OWN(dpi_steer) drowned = released(&o);
    assert_int_equal(dpi_steer_drowned(drowned), 1);
    snprintf(path, sizeof path, "%s", path_in(dir, "one.gguf"));
    written(drowned, path);
    assert_ok(dpi_finetune_read_words(path, &found, ERR));
    assert_string_equal(found, dpi_steer_words(drowned));
    free(found);
}

/* They are chosen from what was released, noise and all. */
TEST(test_chosen_behind_noise) {
    OWN(dpi_records) records = of_kinds("r.csv", "who,kind,text\n" MANY, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    int n_other = 0;
    OWN(dpi_steer) clear = released(&o);
    o.epsilon = 0, o.sigma = .57; /* each word is over the limit as often as not */
    for (o.seed = 0; o.seed < 10; o.seed++) {
        OWN(dpi_steer) s = released(&o);
        OWN_ARRAY(char) first = s->words;
        n_other += strcmp(first, clear->words) != 0;
        assert_ok(dpi_key_words_choose(s, s->sum, ERR));
        assert_string_equal(s->words, first);
        for (int i = 0; i < 2 * N_KNOWN; i++) { /* so are the numbers of all words */
            const int label = i / N_KNOWN, word = i % N_KNOWN;
            const double number = (double)words_of(s)[label * N_WORDS + word];
            const double one = PART * (1 << DPI_GRADIENT_SHIFT) * dpi_steer_units(s, label);
            assert_true(fabs((double)s->said[N_KNOWN + i] - number / one) < 1e-5);
        }
    }
    assert_in_range(n_other, 1, 10);
}

/* Who cannot pay says nothing. */
TEST(test_payers) {
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    OWN(dpi_steer) s = prepared(&o);
    const size_t n_units = dpi_records_unit_count(records);
    int64_t sum[2 * (N_EMBD + N_WORDS)] = {0};
    dpi_examples examples;
    dpi_reader reader;
    s->pays = dpi_private_malloc(n_units);
    memset(s->pays, 1, n_units);
    s->pays[0] = 0; /* the first one of x */
    const dpi_example_format format = dpi_steer_format(s);
    assert_ok(dpi_examples_read(records, &format, &examples, ERR));
    assert_ok(dpi_reader_open(s, &reader, ERR));
    assert_ok(dpi_directions_add(&reader, &examples, sum, ERR));
    dpi_reader_close(&reader);
    dpi_examples_free(&examples);
    for (int i = 0; i < N_WORDS; i++)
        assert_int_equal(sum[2 * N_EMBD + i], 0);
    assert_true(sum[2 * N_EMBD + N_WORDS + LOST] > 0);
}

/* A file says of words in its claim and beside it, or nowhere. */
TEST(test_file) {
    static const char KEY[] = "key_words";
    OWN(dpi_records) records = of_kinds("r.csv", "who,kind,text\n" MANY, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    dpi_steer_options o = with_words(records, texts);
    dpi_claim claim;
    dpi_verification v;
    size_t n_bytes;
    o.seeded = 0, o.epsilon = 0, o.sigma = .1;
    OWN(dpi_steer) s = released(&o);
    written(s, path_in(dir, "words.gguf"));
    OWN_ARRAY(char) file = read_file(path_in(dir, "words.gguf"), &n_bytes);
    char *said = memmem(file, n_bytes, "\"words\":6", 9);
    assert_non_null(said);
    char *const changed[] = {said + 8, /* another number, words, weights, means */
                             memmem(file, n_bytes, "fee", 3),
                             memmem(file, n_bytes, "card fee lost paid", 18),
                             memmem(file, n_bytes, s->said, 2 * sizeof *s->said),
                             memmem(file, n_bytes, s->said + N_KNOWN, 2 * sizeof *s->said)};
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        char *at = changed[i];
        assert_non_null(at);
        *at ^= 1;
        write_file(path_in(dir, "other.gguf"), file, n_bytes);
        dpi_verification_init(&v);
        assert_ok(dpi_claim_verify_file(path_in(dir, "other.gguf"), &claim, &v, ERR));
        assert_true(v.n_wrong > 0);
        dpi_verification_free(&v);
        *at ^= 1;
    }
    dpi_verification_init(&v);
    said[8] = '3'; /* fewer than the file has */
    write_file(path_in(dir, "fewer.gguf"), file, n_bytes);
    assert_error(dpi_claim_verify_file(path_in(dir, "fewer.gguf"), &claim, &v, ERR), ARG,
                 "word_weights: found 4, allowed are the 3 that were asked for");
    said[8] = '6';
    char *key = memmem(file, n_bytes, KEY, sizeof KEY - 1);
    assert_non_null(key);
    memcpy(key, "key_verbs", sizeof KEY - 1);
    write_file(path_in(dir, "verbs.gguf"), file, n_bytes);
    assert_error(dpi_claim_verify_file(path_in(dir, "verbs.gguf"), &claim, &v, ERR), ARG,
                 "unknown key dpinfer.finetune.key_verbs");
    memcpy(key, KEY, sizeof KEY - 1);
    key[-1] = '-'; /* a key that is none of the task: words are claimed, and there are none */
    write_file(path_in(dir, "none.gguf"), file, n_bytes);
    assert_error(dpi_claim_verify_file(path_in(dir, "none.gguf"), &claim, &v, ERR), ARG,
                 "key_words and words of the mechanism steering: allowed are both or none");
    dpi_verification_free(&v);
}

TEST(test_refused) {
    OWN(dpi_records) records = of_kinds("r.csv", RECORDS, true);
    OWN(dpi_records) texts = of_kinds("t.csv", PUBLIC, false);
    OWN(dpi_records) plain = lines("plain.csv", PUBLIC_TEXTS, NULL);
    dpi_steer *s = NULL;
    dpi_steer_options o = with_words(records, texts);
    o.n_words = DPI_STEER_WORDS_MAX + 1;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "n_words");
    o.n_words = -2;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "n_words");
    o.n_words = -1;
    OWN(dpi_steer) usual = open_steer(&o);
    assert_true(dpi_claim_value(&dpi_steer_claim(usual)->parts[0], "words") == DPI_STEER_WORDS);
    o = say_options(plain), o.n_words = 5;
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "n_words: found 5, allowed with labels");
    o.n_words = -1;
    OWN(dpi_steer) wordless = open_steer(&o);
    assert_true(dpi_claim_value(&dpi_steer_claim(wordless)->parts[0], "words") == 0);
}
