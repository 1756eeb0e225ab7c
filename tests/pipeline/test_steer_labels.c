/* Steering vectors of labels: each label's are those that it would have alone, a unit is in those
 * of its label and nowhere else, and whoever writes with them finds them in their order. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "dpinfer/finetune.h"
#include "tests/pipeline/steering.h"

#define LABELLED                                                                                   \
    "who,kind,text\na,b_2,one of a\nb,c,one of b\nc,b_2,two of c\nd,c,of d\na,b_2,three of a\n"    \
    "e,c,more\nf,other,nobody\nb,b_2,of another label\n"
#define ONLY_B "who,kind,text\na,b_2,one of a\nc,b_2,two of c\na,b_2,three of a\n"
#define ONLY_C "who,kind,text\nb,c,one of b\nd,c,of d\ne,c,more\n"
#define PUBLIC_B "kind,text\nb_2,abc\nb_2,some more\nb_2,and others\n"
#define PUBLIC_C "kind,text\nc,tickets\nc,a letter\nc,and then\n"
#define PUBLIC_BOTH                                                                                \
    "kind,text\nc,tickets\nb_2,abc\nc,a letter\nb_2,some more\nb_2,and others\nc,and then\n"

enum { N = 2 * N_EMBD };
static const char *const both[] = {"b_2", "c"}, *const turned[] = {"c", "b_2"};

static const dpi_model *deeper; /* of three layers, of which two are steered; NULL: the usual one */

static dpi_records *labelled(const char *name, const char *text, bool units) {
    DEFAULTS(dpi_records_options, o);
    o.unit_field = units ? "who" : NULL, o.label_field = "kind";
    return read_records(name, text, &o);
}

static dpi_steer_options about_kinds(const dpi_records *records, const dpi_records *texts) {
    static const int32_t two_layers[] = {1, 2};
    dpi_steer_options o = say_options(records);
    o.instruction = (dpi_bytes){"say {label}", 11}, o.public_texts = texts;
    o.sigma = 0, o.epsilon = INFINITY, o.n_positions = 3 * POSITIONS;
    if (deeper)
        o.model = deeper, o.layers = two_layers, o.n_layers = 2;
    return o;
}

/* Of the records of one label. */
static dpi_steer *alone(const char *text, const char *public_text, bool described,
                        int32_t rank) {
    OWN(dpi_records) records = labelled("alone.csv", text, true);
    OWN(dpi_records) texts = labelled("texts.csv", public_text, false);
    dpi_steer_options o = about_kinds(records, texts);
    if (described)
        o.instruction = (dpi_bytes){0}, o.description = (dpi_bytes){"notes on {label}", 16};
    o.rank = rank;
    return released(&o);
}

static void check_alone(const dpi_steer *s, int32_t label, const dpi_steer *one) {
    const int64_t n = s->n_one, n_states = s->n_states, n_layers = s->n_layers;
    assert_memory_equal(s->sum + label * n, one->sum, (size_t)n * sizeof *s->sum);
    assert_memory_equal(s->vectors + label * n_states, one->vectors,
                        (size_t)n_states * sizeof *s->vectors);
    for (int64_t l = 0; l < n_layers; l++)
        assert_true(s->at.size[label * n_layers + l] == one->at.size[l] &&
                    s->at.spread[label * n_layers + l] == one->at.spread[l]);
}

static void check_labels(bool described, int32_t rank) {
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    dpi_steer_options o = about_kinds(records, texts);
    if (described)
        o.instruction = (dpi_bytes){0}, o.description = (dpi_bytes){"notes on {label}", 16};
    o.labels = turned, o.n_labels = 2, o.rank = rank;
    OWN(dpi_steer) s = released(&o);
    OWN(dpi_steer) b = alone(ONLY_B, PUBLIC_B, described, rank);
    OWN(dpi_steer) c = alone(ONLY_C, PUBLIC_C, described, rank);
    assert_int_equal(s->width, rank);
    assert_true(memcmp(b->sum, c->sum, (size_t)rank * sizeof *b->sum) != 0);
    check_alone(s, 0, c);
    check_alone(s, 1, b);
    const dpi_claim *claim = dpi_steer_claim(s);
    assert_int_equal(claim->labels, DPI_LABELS_PUBLIC);
    assert_int_equal(claim->n_labels, 2);
    assert_true(dpi_claim_value(&claim->parts[0], "numbers") == N);
    assert_int_equal(claim->n_units, 6);
}

TEST(test_each_alone) {
    check_labels(false, N_EMBD);
    check_labels(true, N_EMBD);
    check_labels(false, 2);
}

/* The last of three labels, and the last of two layers, are like the first ones. */
TEST(test_three_alone) {
    static const char *const three[] = {"c", "b_2", "d"};
    static const char only_d[] = "who,kind,text\ng,d,and g\n";
    static const char public_d[] = "kind,text\nd,one day\nd,of all\nd,we and they\n";
    tiny_spec spec = tiny_default();
    OWN_ARRAY(void) bytes = NULL;
    spec.n_layer = 3;
    OWN(dpi_model) opened = tiny_open(&spec, 6, &bytes);
    for (int32_t rank = 2; rank <= N_EMBD; rank += N_EMBD - 2) {
        deeper = opened;
        OWN(dpi_records) records = labelled("all.csv", LABELLED "g,d,and g\n", true);
        OWN(dpi_records) texts = labelled(
            "three.csv", PUBLIC_BOTH "d,one day\nd,of all\nd,we and they\n", false);
        dpi_steer_options o = about_kinds(records, texts);
        o.labels = three, o.n_labels = 3, o.rank = rank;
        OWN(dpi_steer) s = released(&o);
        OWN(dpi_steer) c = alone(ONLY_C, PUBLIC_C, false, rank);
        OWN(dpi_steer) b = alone(ONLY_B, PUBLIC_B, false, rank);
        OWN(dpi_steer) d = alone(only_d, public_d, false, rank);
        deeper = NULL;
        check_alone(s, 0, c);
        check_alone(s, 1, b);
        check_alone(s, 2, d);
    }
}

/* A label that means something has the vectors of records that have its meaning as their label, in
 * a description, too; the other one stands for itself, in words there. The file says both. */
TEST(test_meanings) {
    static const char said[] =
        "who,kind,text\na,first kind,one of a\nb,c,one of b\nc,first kind,two of c\nd,c,of d\n"
        "a,first kind,three of a\ne,c,more\n";
    static const char said_public[] =
        "kind,text\nc,tickets\nfirst kind,abc\nc,a letter\nfirst kind,some more\n"
        "first kind,and others\nc,and then\n";
    static const char *const meanings[] = {"first kind", NULL}, *const as_said[] = {"first kind",
                                                                                    "c"};
    char path[256], *found = NULL;
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    OWN(dpi_records) other = labelled("said.csv", said, true);
    OWN(dpi_records) other_texts = labelled("said_public.csv", said_public, false);
    for (int described = 0; described < 2; described++) {
        dpi_steer_options o = about_kinds(records, texts);
        o.labels = both, o.n_labels = 2, o.label_meanings = meanings;
        if (described)
            o.instruction = (dpi_bytes){0}, o.description = (dpi_bytes){"notes on {label}", 16};
        OWN(dpi_steer) s = released(&o);
        snprintf(path, sizeof path, "%s", path_in(dir, described ? "meant.gguf" : "said.gguf"));
        assert_ok(dpi_steer_write(s, path, -1, ERR));
        assert_ok(dpi_finetune_read_meanings(path, &found, ERR));
        assert_string_equal(found, "first kind\n");
        free(found);
        o.label_meanings = NULL;
        OWN(dpi_steer) plain = released(&o);
        o.records = other, o.public_texts = other_texts, o.labels = as_said;
        OWN(dpi_steer) same = released(&o);
        assert_memory_equal(s->vectors, same->vectors, N * sizeof *s->vectors);
        assert_true(memcmp(s->vectors, plain->vectors, N * sizeof *s->vectors) != 0);
        snprintf(path, sizeof path, "%s", path_in(dir, described ? "same.gguf" : "like.gguf"));
        assert_ok(dpi_steer_write(same, path, -1, ERR));
        assert_ok(dpi_finetune_read_meanings(path, &found, ERR));
        assert_null(found);
    }
}

/* Labels that nobody named are those that units have, in their order. */
TEST(test_found) {
    static const char two[] = "who,kind,text\na,b_2,one\nb,c,two\nc,,three\nd,c,four\n";
    OWN(dpi_records) records = labelled("two.csv", two, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    dpi_steer_options o = about_kinds(records, texts);
    OWN(dpi_steer) found = released(&o);
    assert_int_equal(found->labels.n, 2);
    o.labels = both, o.n_labels = 2;
    OWN(dpi_steer) named = released(&o);
    assert_memory_equal(found->vectors, named->vectors, N * sizeof *found->vectors);
    assert_true(found->labels.n_units[0] == 1 && found->labels.n_units[1] == 2);
}

/* Where it is a secret which label a unit has, each counts for as many. */
TEST(test_secret) {
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    dpi_steer_options o = about_kinds(records, texts);
    dpi_steer *none = NULL;
    o.labels = both, o.n_labels = 2;
    OWN(dpi_steer) open = released(&o);
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = 20;
    OWN(dpi_steer) secret = released(&o);
    assert_memory_equal(open->sum, secret->sum, N * sizeof *open->sum);
    assert_int_equal(dpi_steer_claim(secret)->labels, DPI_LABELS_PRIVATE);
    for (int i = 0; i < N; i++) {
        const double n_units = i < N_EMBD ? 2 : 3, of = (double)open->vectors[i] * n_units / 10;
        assert_true(fabs((double)secret->vectors[i] - of) <= 1e-6 * fabs(of));
    }
    o.labels = NULL, o.n_labels = 0;
    assert_error(dpi_steer_open(&o, &none, ERR), ARG, "needed with add-remove");
}

/* One record more of a label moves nothing of the others, and the whole by at most D. */
TEST(test_moves) {
    static const char less[] =
        "who,kind,text\na,b_2,one of a\nb,c,one of b\nc,b_2,two of c\nd,c,\na,b_2,three of a\n"
        "e,c,more\nf,other,nobody\nb,b_2,of another label\n";
    OWN(dpi_records) all = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) some = labelled("less.csv", less, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    const double bound = (double)dpi_gradient_bound(N);
    dpi_steer_options o = about_kinds(all, texts);
    o.labels = both, o.n_labels = 2, o.clip = 1e-3; /* every unit is as long as it may be */
    OWN(dpi_steer) with = released(&o);
    o.records = some;
    OWN(dpi_steer) without = released(&o);
    double square = 0;
    for (int i = 0; i < N; i++) {
        const double moved = (double)(with->sum[i] - without->sum[i]);
        assert_true(i >= N_EMBD || moved == 0);
        square += moved * moved;
    }
    assert_true(sqrt(square) <= bound && sqrt(square) > .99 * bound);
}

/* Noise is on the numbers of all labels: of null records it is all that there is. */
TEST(test_noise) {
    OWN(dpi_records) null = labelled("null.csv", "who,kind,text\na,b_2,\nb,c,\n", true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    const double deviation = 3 * (double)dpi_gradient_bound(N);
    double square[2] = {0};
    dpi_steer_options o = about_kinds(null, texts);
    o.epsilon = 0, o.sigma = 3, o.delta = .1;
    for (o.seed = 0; o.seed < 20; o.seed++) {
        OWN(dpi_steer) s = released(&o);
        for (int i = 0; i < N; i++)
            square[i / N_EMBD] += pow((double)s->sum[i] / deviation, 2) / (20 * N_EMBD);
    }
    dpi_steer *before = open_steer(&o);
    assert_int_equal(dpi_steer_drowned(before), 0);
    dpi_steer_free(before);
    o.records = labelled("one.csv", "who,kind,text\na,b_2,one\nb,c,\n", true), o.sigma = .1;
    OWN(dpi_steer) half = released(&o); /* one label has no text, the other has one */
    assert_int_equal(dpi_steer_drowned(half), 1);
    dpi_records_close((dpi_records *)o.records);
    for (int label = 0; label < 2; label++) /* 1,280 squares: off by .25 once in 10^9, of a seed */
        assert_true(fabs(square[label] - 1) < .25);
}

/* The model writes public texts of each label after its own prompt. */
TEST(test_drawn) {
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    dpi_steer_options o = about_kinds(records, NULL);
    o.labels = both, o.n_labels = 2;
    OWN(dpi_steer) s = prepared(&o);
    assert_true(memcmp(s->at.mean, s->at.mean + N_EMBD, N_EMBD * sizeof *s->at.mean) != 0);
    for (int label = 0; label < 2; label++)
        assert_true(s->at.spread[label] > 0 && s->at.size[label] > 0);
}

TEST(test_file) {
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    const tiny_spec spec = tiny_default();
    char path[300];
    dpi_finetune_task task;
    dpi_model *with;
    void *own;
    size_t n_bytes;
    DEFAULTS(dpi_model_options, m);
    DEFAULTS(dpi_model_info, info);
    dpi_steer_options o = about_kinds(records, texts);
    o.labels = turned, o.n_labels = 2, o.seeded = 0, o.epsilon = 0, o.sigma = .5;
    OWN(dpi_steer) s = released(&o);
    snprintf(path, sizeof path, "%s", path_in(dir, "kinds.gguf"));
    assert_int_equal(written(s, path).n_labels, 2);
    assert_ok(dpi_finetune_read_task(path, &task, ERR));
    assert_string_equal(task.labels, "c\nb_2");
    dpi_finetune_task_free(&task);
    size_t n_file; /* a claim without the labels */
    OWN_ARRAY(char) file = read_file(path, &n_file);
    char *labels = memmem(file, n_file, "\"labels\":\"public\",\"n_labels\":2", 30);
    assert_non_null(labels);
    memcpy(labels, "\"labels\":null, \"n_labels\":null", 30);
    dpi_claim claim;
    dpi_verification v;
    dpi_verification_init(&v);
    write_file(path_in(dir, "none.gguf"), file, n_file);
    assert_error(dpi_claim_verify_file(path_in(dir, "none.gguf"), &claim, &v, ERR), ARG,
                 "found 0 labels in it, 2 in");
    m.control_vector = path;
    tiny_build(&spec, 5, &own, &n_bytes);
    assert_ok(dpi_model_open_buffer(own, n_bytes, &m, &with, ERR));
    assert_ok(dpi_model_info_get(with, &info, ERR));
    assert_int_equal(info.n_control_sets, 2);
    assert_memory_equal(with->control->of[1], s->vectors, N * sizeof(float));
    dpi_model_close(with);
    free(own);
}

TEST(test_refused) {
    static const char *const absent[] = {"b_2", "d"}, *const twice[] = {"b_2", "b_2"};
    static const char *const blank[] = {"b", " "}, *const two_lines[] = {"b\nc", NULL};
    OWN(dpi_records) records = labelled("all.csv", LABELLED, true);
    OWN(dpi_records) texts = labelled("both.csv", PUBLIC_BOTH, false);
    OWN(dpi_records) plain = lines("plain.csv", PUBLIC_TEXTS, NULL);
    OWN(dpi_records) one = labelled("one.csv", PUBLIC_B "c,tickets\n", false);
    dpi_steer_options o;
    dpi_steer *s = NULL;
#define REFUSES(change, part)                                                                      \
    o = about_kinds(records, texts), o.labels = both, o.n_labels = 2, change,                      \
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, part)
    REFUSES(o.labels = absent, "found no unit of 'd'");
    REFUSES(o.labels = NULL, "labels: found NULL");
    REFUSES(o.labels = twice, "found 'b_2' more than once");
    REFUSES(o.n_labels = -1, "labels");
    REFUSES(o.label_meanings = blank, "label_meanings: found a blank one, or one of two lines");
    REFUSES(o.label_meanings = two_lines, "label_meanings: found a blank one, or one of two lines");
    REFUSES((o.label_meanings = both, o.n_labels = 0), "label_meanings: allowed with labels");
    REFUSES((o.instruction = (dpi_bytes){"say", 3}), "instruction: found no {label}");
    REFUSES(o.public_texts = plain, "records with them and public texts without");
    REFUSES(o.records = plain, "some, and records without them");
    REFUSES((o.records = plain, o.n_labels = 0), "public texts with them and records without");
    o = about_kinds(records, one), o.labels = both, o.n_labels = 2;
    OWN(dpi_steer) few = open_steer(&o);
    assert_error(dpi_steer_prepare(few, ERR), ARG, "public texts of c: found 1 that have tokens");
}
