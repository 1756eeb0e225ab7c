/* A release from C: the texts of the command line, events, records, units. The model is the
 * built-in one, or a tiny one where much is drawn; the records are the sample documents. */
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "tests/pipeline/records_of.h"
#include "tests/pipeline/release_texts.h"
#include "tests/support/tiny_model.h"

static char folder[256];
static void *image;
static dpi_model *tiny;
static char x[TEXT_BYTES], y[TEXT_BYTES];

SETUP {
    const tiny_spec spec = tiny_default();
    open_documents();
    make_dir(folder, sizeof folder);
    tiny = tiny_open(&spec, 3, &image);
}

TEARDOWN {
    close_documents();
    remove_dir(folder);
    dpi_model_close(tiny);
    free(image);
}

/* The texts are those that the program writes with the same options. */
static void expect_command(const dpi_release_options *o, bool as_lines, const char *arguments) {
    char line[1024];
    draw_texts(open_release(o), as_lines, x);
    snprintf(line, sizeof line,
             "%s run %s %s %s --num 2 -n %d --threads 1 --max-ref-tokens %d --seed %d 2>/dev/null",
             DPI_CLI, DPI_BUILTIN_MODEL, DPI_DOCUMENTS, arguments, N_TOKENS, MAX_REF_TOKENS,
             (int)o->seed);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    y[fread(y, 1, TEXT_BYTES - 1, f)] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_string_equal(x, y);
}

TEST(test_command_line) {
    uint64_t seed = 7;
    dpi_release_options o = options_of(&seed);
    expect_command(&o, false, "--rho 20 -B 8");
    seed = 8, o = options_of(&seed);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    expect_command(&o, false, "--rho 20 -B 8 --adjacency add-remove");
    seed = 9, o = options_of(&seed);
    o.method.method = DPI_METHOD_PLAIN, o.reference = 2;
    expect_command(&o, false, "--plain --temp 1 --top-k 100 --reference 3");
}

TEST(test_lines) {
    static const char text[] = "a \"quote\", a \\, \x01 and\n\xc3\xa9";
    static const char begins[] = "{\"index\":3,\"text\":\"a \\\"quote\\\", a \\\\, \\u0001 and\\n"
                                 "\xc3\xa9\",\"n_tokens\":9,\"ended\":true,\"private\":false,";
    const uint64_t seed = 7;
    const dpi_release_options o = options_of(&seed);
    char *line;
    size_t n;
    expect_command(&o, true, "--rho 20 -B 8 --jsonl");
    assert_non_null(strstr(x, "NOT PRIVATE")); /* of a seed */
    dpi_release *release = open_release(&o);
    assert_ok(dpi_release_line(release, 3, text, sizeof text - 1, 9, DPI_END_EOG, &line, &n, ERR));
    assert_int_equal(strncmp(line, begins, sizeof begins - 1), 0);
    free(line);
    dpi_release_free(release);
}

/* The first sums of each text, by what stands before them. */
typedef struct first_sums {
    int64_t header[2][DPI_SUMS_HEADER];
    int32_t n;   /* texts */
    bool begins; /* the next sums are a text's first ones */
} first_sums;

static dpi_status note_sums(void *user, int64_t *sums, int32_t n, dpi_error *err) {
    first_sums *f = user;
    (void)n, (void)err;
    if (f->begins && f->n < 2)
        memcpy(f->header[f->n++], sums, sizeof f->header[0]);
    f->begins = false;
    return DPI_STATUS_OK;
}

static dpi_status pass_token(void *user, int32_t *token, dpi_error *err) {
    (void)user, (void)token, (void)err;
    return DPI_STATUS_OK;
}

/* All that the sums of a token depend on is the same for the first tokens of two texts, but for
 * their records: what parts agree on says which text it is. */
TEST(test_spread_texts) {
    const uint64_t seed = 7;
    first_sums f = {.begins = true};
    const dpi_spread spread = {0, 1, note_sums, pass_token, &f};
    dpi_release_options o = options_of(&seed);
    dpi_release_event e = {0};
    o.spread = &spread, o.n_parallel = 1;
    dpi_release *release = open_release(&o);
    do {
        assert_ok(dpi_release_advance(release, &e, ERR));
        f.begins |= e.type == DPI_EVENT_END;
    } while (e.type != DPI_EVENT_NONE);
    dpi_release_free(release);
    assert_int_equal(f.n, 2);
    assert_memory_not_equal(f.header[0], f.header[1], sizeof f.header[0]);
}

static void expect_stopped(dpi_release *release, dpi_status wanted) {
    dpi_release_event e;
    for (int i = 0; i < 3; i++)
        assert_status(dpi_release_advance(release, &e, ERR), wanted, "");
    dpi_release_free(release);
}

/* ---- Several texts at a time ----------------------------------------------------------------- */

/* The events of a text, END included, in a form that can be compared. */
enum { MANY = 5, LONG = 60 };
typedef struct told {
    int32_t tokens[MANY][LONG], n[MANY], end[MANY], n_texts;
    int32_t n_beside; /* events of a text before the END of an earlier one */
    char text[MANY][TEXT_BYTES];
    size_t n_bytes[MANY];
} told;

/* Goes on to the n_events-th event that is no PROMPT, or to the status that ends the release. */
static dpi_status listen(dpi_release *release, int32_t n_events, told *t) {
    dpi_release_event e = {0};
    dpi_status status = DPI_STATUS_OK;
    while (n_events > 0 && (status = dpi_release_advance(release, &e, NULL)) == DPI_STATUS_OK) {
        if (e.type == DPI_EVENT_PROMPT)
            continue;
        if (e.type == DPI_EVENT_NONE)
            break;
        n_events--;
        t->n_beside += e.index > 0 && t->end[e.index - 1] == DPI_END_NONE;
        memcpy(t->text[e.index] + t->n_bytes[e.index], e.text, e.n_bytes);
        t->n_bytes[e.index] += e.n_bytes;
        if (e.type == DPI_EVENT_TOKEN)
            t->tokens[e.index][t->n[e.index]++] = e.token;
        assert_int_equal(e.n_drawn, t->n[e.index]);
        if (e.type == DPI_EVENT_END) {
            assert_int_equal(t->end[e.index], DPI_END_NONE);
            t->end[e.index] = e.end;
            t->n_texts++;
        }
    }
    return status;
}

static dpi_release_options many_texts(const uint64_t *seed, int32_t n_parallel) {
    dpi_release_options o = options_of(seed);
    o.model = tiny;
    o.batch = 2, o.n_texts = MANY, o.n_tokens = LONG, o.n_parallel = n_parallel;
    o.method.rho = 1000;
    return o;
}

static void listen_all(const dpi_release_options *o, told *t) {
    dpi_release *release = open_release(o);
    dpi_release_progress p = {.struct_size = sizeof p};
    memset(t, 0, sizeof *t);
    assert_int_equal(listen(release, INT32_MAX, t), DPI_STATUS_OK);
    assert_int_equal(t->n_texts, MANY);
    assert_ok(dpi_release_progress_get(release, &p, ERR));
    assert_int_equal(p.n_ended, MANY);
    assert_int_equal(p.n_read, p.n_prompts);
    dpi_release_free(release);
}

/* The same texts for the same bits, however many are drawn at a time, and as_drawn: by position, by
 * content, drawn, with other methods and accountants. Some end early, some are as long as they may
 * be. */
TEST(test_parallel) {
    static told one, other;
    static const int32_t all[] = {2, 3, 8, 0};
    int32_t n_early = 0, n_whole = 0;
    for (uint64_t kind = 0; kind < 6; kind++) {
        dpi_release_options o = many_texts(&kind, 1);
        if (kind == 1)
            o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        else if (kind == 2)
            o.method.accountant = DPI_ACCOUNTANT_FILTER;
        else if (kind == 3)
            o.method.method = DPI_METHOD_PLAIN;
        else if (kind == 4)
            assert_ok(dpi_method_defaults(DPI_METHOD_AMIN, &o.method, ERR));
        else if (kind == 5)
            o.method.rho = 0, o.method.epsilon = 50, o.method.subsample = .5;
        if (kind == 4)
            o.method.rho = 1000, o.method.delta = 1e-6;
        listen_all(&o, &one);
        for (int32_t i = 0; i < MANY; i++) {
            n_early += one.end[i] == DPI_END_EOG;
            n_whole += one.end[i] == DPI_END_LENGTH;
        }
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            o.n_parallel = all[i];
            listen_all(&o, &other);
            assert_memory_equal(&one, &other, sizeof one);
        }
        o.n_parallel = 3, o.as_drawn = 1;
        listen_all(&o, &other);
        assert_true(other.n_beside > 0);
        other.n_beside = 0;
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_true(n_early > 0 && n_whole > 0);
}

/* No two texts have the same bits, of one seed or of the next one. */
TEST(test_streams) {
    static told t[2];
    for (uint64_t seed = 0; seed < 2; seed++) {
        dpi_release_options o = many_texts(&seed, 1);
        o.method.method = DPI_METHOD_PLAIN;
        listen_all(&o, &t[seed]);
    }
    for (int32_t i = 0; i < 2 * MANY; i++)
        for (int32_t k = 0; k < i; k++)
            assert_memory_not_equal(t[i / MANY].tokens[i % MANY], t[k / MANY].tokens[k % MANY],
                                    LONG * sizeof t[0].tokens[0][0]);
}

/* What was drawn of all texts that were begun is told, and is how they begin in a release that did
 * not stop. */
TEST(test_parallel_cancel) {
    static told whole, part;
    const uint64_t seed = 5;
    const dpi_release_options o = many_texts(&seed, 3);
    listen_all(&o, &whole);
    dpi_release *release = open_release(&o);
    memset(&part, 0, sizeof part);
    assert_int_equal(listen(release, 20, &part), DPI_STATUS_OK);
    dpi_release_cancel(release);
    assert_int_equal(listen(release, INT32_MAX, &part), DPI_STATUS_CANCELLED);
    assert_int_equal(part.n_texts, 3);
    assert_int_equal(part.n[0], 20);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(part.end[i], DPI_END_CANCELLED);
        assert_in_range(part.n[i], 1, whole.n[i]);
        assert_memory_equal(part.tokens[i], whole.tokens[i],
                            (size_t)part.n[i] * sizeof *part.tokens[i]);
        assert_memory_equal(part.text[i], whole.text[i], part.n_bytes[i]);
    }
    expect_stopped(release, DPI_STATUS_CANCELLED);
}

/* The bits of all texts come from one source that fails: texts before the one that fails go on, and
 * fail in turn. */
TEST(test_parallel_failure) {
    static told part;
    for (int32_t n = 0; n < 90; n += 11) {
        limited_source source = {1, n};
        dpi_release_options o = many_texts(NULL, 3);
        o.method.random = limited_bits, o.method.random_user = &source;
        dpi_release *release = open_release(&o);
        memset(&part, 0, sizeof part);
        assert_int_equal(listen(release, INT32_MAX, &part), DPI_STATUS_ENTROPY);
        int32_t n_told = 0;
        for (int32_t i = 0; i < part.n_texts; i++) {
            n_told += part.n[i];
            assert_int_not_equal(part.end[i], DPI_END_NONE);
        }
        assert_int_equal(n_told, n); /* each draw that succeeded */
        expect_stopped(release, DPI_STATUS_ENTROPY);
    }
}

/* ---- Records --------------------------------------------------------------------------------- */

/* The files of a folder are taken away once a release by content has begun: each was read already,
 * and its texts are those of files that stay. */
TEST(test_read_once) {
    static const char *const names[] = {"0.txt", "1.txt", "2.txt", "3.txt", "4.txt", "5.txt"};
    const uint64_t seed = 5;
    char texts[300];
    snprintf(texts, sizeof texts, "%s/texts", folder);
    assert_int_equal(mkdir(texts, 0700), 0);
    for (size_t i = 0; i < 6; i++)
        write_file(path_in(texts, names[i]), "Patient number ", 14 + i % 2);
    for (int gone = 0; gone < 2; gone++) {
        dpi_records *records = NULL;
        dpi_release_options o = options_of(&seed);
        assert_ok(dpi_records_open(texts, NULL, &records, ERR));
        o.records = records;
        o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        dpi_release *release = open_release(&o);
        assert_ok(dpi_release_begin(release, ERR));
        for (int i = 0; i < 6 && gone; i++)
            assert_int_equal(unlink(path_in(texts, names[i])), 0);
        assert_int_equal(dpi_release_null_records(release), -1);
        draw_texts(release, false, gone ? y : x);
        dpi_records_close(records);
    }
    assert_string_equal(x, y);
}

/* How many records there are must not decide whether a release by content succeeds. */
TEST(test_no_records) {
    dpi_records *none = records_of(NULL, 0);
    dpi_release *release = NULL;
    dpi_release_options o = options_of(NULL);
    o.records = none;
    assert_error(dpi_release_open(&o, &release, ERR), FORMAT, "no record");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    release = open_release(&o);
    assert_int_equal(dpi_release_run(release)->n_records, 0);
    draw_texts(release, false, x);
    dpi_records_close(none);
}

/* Delta is held against public numbers: 2 texts of 8 records, whatever there are. */
TEST(test_delta) {
    dpi_release *release = NULL;
    dpi_release_options o = options_of(NULL);
    o.method.delta = .05;
    assert_error(dpi_release_open(&o, &release, ERR), ARG, "delta: found 0.05");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    dpi_release_free(open_release(&o));
    o.method.delta = 1. / 16;
    assert_error(dpi_release_open(&o, &release, ERR), ARG, "delta: found 0.0625");
}

TEST(test_null_records) {
    const char *some[] = {"a text", NULL, " ", "another"};
    dpi_records *records = records_of(some, 4);
    dpi_release_event e;
    dpi_release_options o = options_of(NULL);
    o.records = records, o.batch = 2;
    dpi_release *release = open_release(&o);
    do
        assert_ok(dpi_release_advance(release, &e, ERR));
    while (e.type != DPI_EVENT_NONE);
    assert_int_equal(dpi_release_null_records(release), 2);
    dpi_release_free(release);
    o.method.method = DPI_METHOD_PLAIN, o.reference = 1;
    release = open_release(&o);
    assert_error(dpi_release_advance(release, &e, ERR), FORMAT, "is empty");
    dpi_release_free(release);
    o.reference = 4;
    assert_error(dpi_release_open(&o, &release, ERR), ARG, "allowed 0..3");
    dpi_records_close(records);
}

/* ---- Where it stops -------------------------------------------------------------------------- */

/* Advances to the n-th token, and expects the end of the text behind it. */
static void expect_end_after(dpi_release *release, int32_t n, bool cancel, int32_t end) {
    dpi_release_event e;
    do
        assert_ok(dpi_release_advance(release, &e, ERR));
    while (e.type != DPI_EVENT_TOKEN || e.n_drawn < n);
    if (cancel)
        dpi_release_cancel(release);
    assert_ok(dpi_release_advance(release, &e, ERR));
    assert_int_equal(e.type, DPI_EVENT_END);
    assert_int_equal(e.n_drawn, n);
    assert_true(!cancel || e.end == end);
}

TEST(test_cancel) {
    dpi_release_event e;
    const uint64_t seed = 5; /* of a text that does not end before its third token */
    const dpi_release_options o = options_of(&seed);
    dpi_release *release = open_release(&o);
    expect_end_after(release, 3, true, DPI_END_CANCELLED);
    expect_stopped(release, DPI_STATUS_CANCELLED);
    release = open_release(&o); /* while prompts are read there is no text that could end */
    assert_ok(dpi_release_advance(release, &e, ERR));
    assert_int_equal(e.type, DPI_EVENT_PROMPT);
    dpi_release_cancel(release);
    expect_stopped(release, DPI_STATUS_CANCELLED);
}

TEST(test_failure) {
    limited_source source = {1, 4};
    dpi_release_options o = options_of(NULL);
    o.method.random = limited_bits, o.method.random_user = &source;
    dpi_release *release = open_release(&o);
    expect_end_after(release, 4, false, 0);
    expect_stopped(release, DPI_STATUS_ENTROPY);
}

TEST(test_order) {
    dpi_release_event e;
    dpi_release_plan plan = {.struct_size = sizeof plan};
    dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    assert_ok(dpi_release_begin(release, ERR));
    assert_error(dpi_release_begin(release, ERR), STATE, "begun already");
    dpi_release_free(release);
    o.records = NULL, o.n_records = 100, o.n_texts = 0;
    release = open_release(&o); /* a plan */
    assert_int_equal(dpi_release_run(release)->n_texts, 13);
    assert_error(dpi_release_advance(release, &e, ERR), STATE, "it is a plan");
    assert_ok(dpi_release_plan_get(release, &plan, ERR));
    assert_int_equal(plan.rows_per_step, 9 * plan.n_parallel);
    assert_true(plan.memory_bytes >= plan.session_bytes && plan.session_bytes > 0);
    assert_true(plan.memory_usual_bytes > 0 && plan.memory_usual_bytes <= plan.memory_bytes);
    dpi_release_free(release);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    assert_error(dpi_release_open(&o, &release, ERR), ARG, "must be given");
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* The texts of a CSV file with the columns who and text. */
static void draw_units(const char *content, int32_t adjacency, double subsample, int32_t per_unit,
                       char *texts) {
    const char *path = path_in(folder, "letters.csv");
    const uint64_t seed = 11;
    dpi_release_options o = options_of(&seed);
    dpi_records_options ro;
    dpi_records *records = NULL;
    dpi_records_options_init(&ro);
    ro.unit_field = "who";
    write_file(path, content, strlen(content));
    assert_ok(dpi_records_open(path, &ro, &records, ERR));
    o.records = records, o.batch = 2, o.n_texts = 3;
    if (subsample > 0)
        o.method.rho = 0, o.method.epsilon = 9, o.method.subsample = subsample;
    o.method.adjacency = adjacency;
    o.method.max_per_unit = per_unit;
    o.method.pace = DPI_PACE_NONE; /* so that every token may tell a letter */
    dpi_release *release = open_release(&o);
    const dpi_run *claim = dpi_release_run(release);
    assert_int_equal(claim->method.max_per_unit, per_unit > 0 ? per_unit : 4);
    assert_int_equal(claim->n_records, dpi_run_is_assigned(claim) ? 0 : 6);
    assert_int_equal(dpi_release_null_records(release), -1);
    draw_texts(release, false, texts);
    dpi_records_close(records);
}

/* A person with the same letter several times, between others' letters, counts as with one letter,
 * in one text and slot; letters after the first M do not count, whoever else has how many. */
TEST(test_units) {
#define OF_A "a,the printer is jammed\n"
#define OF_BC "b,my screen is black\nc,no mail since noon\n"
#define OF_D "d,the door is locked\n"
#define OF_EF "e,it is too cold\nf,the lift is out of order\n"
    static const char once[] = "who,text\n" OF_A OF_BC OF_D OF_EF;
    static const char several[] = "who,text\n" OF_A OF_A OF_BC OF_A OF_D OF_EF OF_D OF_A
                                  "a,another letter\nf,\na,and another one\n";
    static const char other[] =
        "who,text\n" OF_A "a,Review of the Golden Mill: one star\n" OF_BC OF_D OF_EF;
    for (int i = 0; i < 3; i++) {
        const int32_t adjacency = i == 1 ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
        const double q = i == 2 ? .9 : 0;
        draw_units(once, adjacency, q, 0, x);
        draw_units(several, adjacency, q, 0, y);
        assert_string_equal(x, y);
        draw_units(other, adjacency, q, 1, y);
        assert_string_equal(x, y);
    }
    draw_units(other, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, y);
    draw_units(once, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, x);
    assert_string_not_equal(x, y); /* the second letter counts */
    dpi_release_options o = options_of(NULL);
    dpi_release *release = NULL;
    o.method.max_per_unit = 2;
    assert_error(dpi_release_open(&o, &release, ERR), ARG,
                 "max_per_unit: found '2', allowed only with unit_field");
}
