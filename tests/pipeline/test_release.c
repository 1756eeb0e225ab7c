/* A release from C: the texts of the command line, events, records, units. The model is the
 * built-in one, the records are the sample documents. */
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "tests/pipeline/release_texts.h"

static void run_command(const char *arguments, char *texts) {
    char line[1024];
    snprintf(line, sizeof line, "%s run %s %s %s 2>/dev/null", DPI_CLI, DPI_BUILTIN_MODEL,
             DPI_DOCUMENTS, arguments);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    size_t n = fread(texts, 1, TEXT_BYTES - 1, f);
    texts[n] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void test_command_line(void **state) {
    (void)state;
    static char by_hand[TEXT_BYTES], wanted[TEXT_BYTES];
    uint64_t seed = 7;
    dpi_release_options o = options_of(&seed);
    draw_texts(open_release(&o), by_hand);
    run_command("--rho 20 -B 8 --num 2 -n 12 --seed 7", wanted);
    assert_string_equal(by_hand, wanted);

    seed = 8;
    o = options_of(&seed);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    draw_texts(open_release(&o), by_hand);
    run_command("--rho 20 -B 8 --num 2 -n 12 --seed 8 --adjacency add-remove", wanted);
    assert_string_equal(by_hand, wanted);

    seed = 9;
    o = options_of(&seed);
    o.method.method = DPI_METHOD_PLAIN;
    o.reference = 2;
    draw_texts(open_release(&o), by_hand);
    run_command("--plain --temp 1 --top-k 100 --reference 3 --num 2 -n 12 --seed 9", wanted);
    assert_string_equal(by_hand, wanted);
}

/* All texts as lines, each with a line feed. */
static void draw_lines(const dpi_release_options *o, char *lines) {
    dpi_release *release = open_release(o);
    dpi_release_event e;
    dpi_error err;
    char text[TEXT_BYTES], *line;
    size_t n = 0, n_line;
    do {
        assert_ok(dpi_release_advance(release, &e, &err), &err);
        memcpy(text + n, e.text, e.n_bytes);
        n += e.n_bytes;
        if (e.type != DPI_EVENT_END)
            continue;
        assert_ok(dpi_release_line(release, e.index, text, n, e.n_drawn, e.end, &line, &n_line,
                                   &err), &err);
        assert_int_equal(strlen(line), n_line);
        lines += sprintf(lines, "%s\n", line);
        free(line);
        n = 0;
    } while (e.type != DPI_EVENT_NONE);
    dpi_release_free(release);
}

static void test_lines(void **state) {
    (void)state;
    static char by_hand[TEXT_BYTES], wanted[TEXT_BYTES];
    uint64_t seed = 7;
    dpi_release_options o = options_of(&seed);
    draw_lines(&o, by_hand);
    run_command("--rho 20 -B 8 --num 2 -n 12 --seed 7 --jsonl", wanted);
    assert_string_equal(by_hand, wanted);
    assert_non_null(strstr(wanted, "NOT PRIVATE")); /* of a seed */

    static const char text[] = "a \"quote\", a \\, \x01 and\n\xc3\xa9";
    dpi_release *release = open_release(&o);
    dpi_error err;
    char *line;
    size_t n;
    assert_ok(dpi_release_line(release, 3, text, sizeof text - 1, 9, DPI_END_EOG, &line, &n, &err),
              &err);
    static const char begins[] = "{\"index\":3,\"text\":\"a \\\"quote\\\", a \\\\, \\u0001 and\\n"
                                 "\xc3\xa9\",\"n_tokens\":9,\"ended\":true,\"private\":false,";
    assert_int_equal(strncmp(line, begins, sizeof begins - 1), 0);
    free(line);
    dpi_release_free(release);
}

static void expect_stopped(dpi_release *release, dpi_status wanted) {
    dpi_release_event e;
    dpi_error err;
    for (int i = 0; i < 3; i++)
        assert_error(dpi_release_advance(release, &e, &err), wanted, &err, "");
    dpi_release_free(release);
}

/* ---- Several texts at a time ----------------------------------------------------------------- */

/* The events of a text, END included, in a form that can be compared. */
enum { MANY = 5, LONG = 150 };
typedef struct told {
    int32_t tokens[MANY][LONG], n[MANY], end[MANY], n_texts;
    int32_t n_beside; /* events of a text before the END of an earlier one */
    char text[MANY][TEXT_BYTES];
    size_t n_bytes[MANY];
} told;

/* Goes on to the n_events-th event that is no PROMPT, or to the status that ends the release. */
static dpi_status listen(dpi_release *release, int32_t n_events, told *t) {
    dpi_release_event e = {0};
    dpi_status status;
    while (n_events > 0 && (status = dpi_release_advance(release, &e, NULL)) == DPI_STATUS_OK) {
        if (e.type == DPI_EVENT_PROMPT)
            continue;
        if (e.type == DPI_EVENT_NONE)
            return DPI_STATUS_OK;
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
    return n_events > 0 ? status : DPI_STATUS_OK;
}

static dpi_release_options many_texts(const uint64_t *seed, int32_t n_parallel) {
    dpi_release_options o = options_of(seed);
    o.batch = 2;
    o.n_texts = MANY;
    o.n_tokens = LONG;
    o.method.rho = 1000;
    o.n_parallel = n_parallel;
    o.session.n_threads = 1;
    o.prompts.max_reference_tokens = 16;
    return o;
}

static void listen_all(const dpi_release_options *o, told *t) {
    dpi_release *release = open_release(o);
    memset(t, 0, sizeof *t);
    assert_int_equal(listen(release, INT32_MAX, t), DPI_STATUS_OK);
    assert_int_equal(t->n_texts, MANY);
    dpi_release_progress p = {.struct_size = sizeof p};
    assert_ok(dpi_release_progress_get(release, &p, NULL), NULL);
    assert_int_equal(p.n_ended, MANY);
    assert_int_equal(p.n_read, p.n_prompts);
    dpi_release_free(release);
}

/* The same texts for the same bits, however many are drawn at a time, and as_drawn: by position, by
 * content, drawn, with other methods and accountants. Some end early, some are as long as they may
 * be. */
static void test_parallel(void **state) {
    (void)state;
    static told one, other;
    static const int32_t all[] = {2, 3, 8, 0};
    int32_t n_early = 0, n_whole = 0;
    dpi_error err;
    for (uint64_t kind = 0; kind < 6; kind++) {
        dpi_release_options o = many_texts(&kind, 1);
        if (kind == 1) {
            o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        } else if (kind == 2) {
            o.method.accountant = DPI_ACCOUNTANT_FILTER;
        } else if (kind == 3) {
            o.method.method = DPI_METHOD_PLAIN;
        } else if (kind == 4) {
            assert_ok(dpi_method_defaults(DPI_METHOD_AMIN, &o.method, &err), &err);
            o.method.rho = 1000, o.method.delta = 1e-6;
        } else if (kind == 5) {
            o.method.rho = 0, o.method.epsilon = 50, o.method.subsample = .5;
        }
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
        o.n_parallel = 3;
        o.as_drawn = 1;
        listen_all(&o, &other);
        assert_true(other.n_beside > 0);
        other.n_beside = 0;
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_true(n_early > 0 && n_whole > 0);
}

/* No two texts have the same bits, of one seed or of the next one. */
static void test_streams(void **state) {
    (void)state;
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

/* The texts of a release that stopped are beginnings of the texts of one that did not. */
static void assert_beginnings(const told *part, const told *whole) {
    for (int32_t i = 0; i < part->n_texts; i++) {
        assert_true(part->n[i] > 0 && part->n[i] <= whole->n[i]);
        assert_memory_equal(part->tokens[i], whole->tokens[i],
                            (size_t)part->n[i] * sizeof *part->tokens[i]);
        assert_memory_equal(part->text[i], whole->text[i], part->n_bytes[i]);
    }
}

static void test_parallel_cancel(void **state) {
    (void)state;
    static told whole, part;
    const uint64_t seed = 3;
    dpi_release_options o = many_texts(&seed, 3);
    listen_all(&o, &whole);
    dpi_release *release = open_release(&o);
    memset(&part, 0, sizeof part);
    assert_int_equal(listen(release, 20, &part), DPI_STATUS_OK);
    dpi_release_cancel(release);
    assert_int_equal(listen(release, INT32_MAX, &part), DPI_STATUS_CANCELLED);
    assert_int_equal(part.n_texts, 3); /* what was drawn of the others is told too */
    assert_beginnings(&part, &whole);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(part.end[i], DPI_END_CANCELLED);
    assert_int_equal(part.n[0], 20);
    expect_stopped(release, DPI_STATUS_CANCELLED);
}

/* The bits of all texts come from one source that fails: texts before the one that fails go on, and
 * fail in turn. */
static void test_parallel_failure(void **state) {
    (void)state;
    static told part;
    for (int32_t n = 0; n < 90; n += 11) {
        limited_source source = {1, n};
        dpi_release_options o = many_texts(NULL, 3);
        o.method.random = limited_bits;
        o.method.random_user = &source;
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
static void test_read_once(void **state) {
    (void)state;
    static char with[TEXT_BYTES], without[TEXT_BYTES];
    char folder[256], path[512];
    dpi_error err;
    make_dir(folder, sizeof folder);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%d.txt", folder, i);
        write_file(path, "Patient number ", 14 + (size_t)i % 2);
    }
    for (int gone = 0; gone < 2; gone++) {
        uint64_t seed = 5;
        dpi_records *records = NULL;
        assert_ok(dpi_records_open(folder, NULL, &records, &err), &err);
        dpi_release_options o = options_of(&seed);
        o.records = records;
        o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        dpi_release *release = open_release(&o);
        assert_ok(dpi_release_begin(release, &err), &err);
        for (int i = 0; i < 6 && gone; i++) {
            snprintf(path, sizeof path, "%s/%d.txt", folder, i);
            assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(dpi_release_null_records(release), -1);
        draw_texts(release, gone ? without : with);
        dpi_records_close(records);
    }
    assert_string_equal(with, without);
    remove_dir(folder);
}

/* How many records there are must not decide whether a release by content succeeds. */
static void test_no_records(void **state) {
    (void)state;
    static char texts[TEXT_BYTES];
    dpi_records *none;
    dpi_release *release = NULL;
    dpi_error err;
    assert_ok(dpi_records_create(NULL, NULL, 0, &none, &err), &err);
    dpi_release_options o = options_of(NULL);
    o.records = none;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_FORMAT, &err, "no record");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    release = open_release(&o);
    assert_int_equal(dpi_release_claim(release)->n_records, 0);
    draw_texts(release, texts);
    dpi_records_close(none);
}

/* Delta is held against public numbers: 2 texts of 8 records, whatever there are. */
static void test_delta(void **state) {
    (void)state;
    dpi_release *release = NULL;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    o.method.delta = .05;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "delta: found 0.05");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    dpi_release_free(open_release(&o));
    o.method.delta = 1. / 16;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "delta: found 0.0625");
}

static void test_null_records(void **state) {
    (void)state;
    const char *some[] = {"a text", NULL, " ", "another"};
    const size_t n_bytes[] = {6, 0, 1, 7};
    dpi_records *records;
    dpi_error err;
    dpi_release_event e;
    assert_ok(dpi_records_create(some, n_bytes, 4, &records, &err), &err);
    dpi_release_options o = options_of(NULL);
    o.records = records;
    o.batch = 2;
    dpi_release *release = open_release(&o);
    do
        assert_ok(dpi_release_advance(release, &e, &err), &err);
    while (e.type != DPI_EVENT_NONE);
    assert_int_equal(dpi_release_null_records(release), 2);
    dpi_release_free(release);
    o.method.method = DPI_METHOD_PLAIN;
    o.reference = 1;
    release = open_release(&o);
    assert_error(dpi_release_advance(release, &e, &err), DPI_STATUS_FORMAT, &err, "is empty");
    dpi_release_free(release);
    o.reference = 4;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "allowed 0..3");
    dpi_records_close(records);
}

/* ---- Where it stops -------------------------------------------------------------------------- */

/* Advances to the n-th token. */
static void advance_to(dpi_release *release, int32_t n, dpi_release_event *e) {
    dpi_error err;
    do
        assert_ok(dpi_release_advance(release, e, &err), &err);
    while (e->type != DPI_EVENT_TOKEN || e->n_drawn < n);
}

static void test_cancel(void **state) {
    (void)state;
    dpi_release_event e;
    dpi_error err;
    uint64_t seed = 5; /* of a text that does not end before its third token */
    const dpi_release_options o = options_of(&seed);
    dpi_release *release = open_release(&o);
    advance_to(release, 3, &e);
    dpi_release_cancel(release);
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_END);
    assert_int_equal(e.end, DPI_END_CANCELLED);
    assert_int_equal(e.n_drawn, 3);
    expect_stopped(release, DPI_STATUS_CANCELLED);
    release = open_release(&o); /* while prompts are read there is no text that could end */
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_PROMPT);
    dpi_release_cancel(release);
    expect_stopped(release, DPI_STATUS_CANCELLED);
}

static void test_failure(void **state) {
    (void)state;
    limited_source source = {1, 4};
    dpi_release_event e;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    o.method.random = limited_bits;
    o.method.random_user = &source;
    dpi_release *release = open_release(&o);
    advance_to(release, 4, &e);
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_END);
    assert_int_equal(e.n_drawn, 4);
    expect_stopped(release, DPI_STATUS_ENTROPY);
}

static void test_order(void **state) {
    (void)state;
    dpi_release_event e;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    assert_ok(dpi_release_begin(release, &err), &err);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_STATE, &err, "begun already");
    dpi_release_free(release);
    o.records = NULL;
    o.n_records = 100;
    o.n_texts = 0;
    release = open_release(&o); /* a plan */
    assert_int_equal(dpi_release_claim(release)->n_texts, 13);
    assert_error(dpi_release_advance(release, &e, &err), DPI_STATUS_STATE, &err, "it is a plan");
    dpi_release_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_release_plan_get(release, &plan, &err), &err);
    assert_int_equal(plan.rows_per_step, 9 * plan.n_parallel);
    assert_true(plan.memory_bytes >= plan.session_bytes && plan.session_bytes > 0);
    dpi_release_free(release);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "must be given");
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* The texts of a CSV file with the columns who and text. */
static void draw_units(const char *path, const char *content, int32_t adjacency, double subsample,
                       int32_t per_unit, char *texts) {
    dpi_records_options ro;
    dpi_records *records = NULL;
    dpi_error err;
    uint64_t seed = 11;
    dpi_records_options_init(&ro);
    ro.unit_field = "who";
    write_file(path, content, strlen(content));
    assert_ok(dpi_records_open(path, &ro, &records, &err), &err);
    dpi_release_options o = options_of(&seed);
    o.records = records;
    o.batch = 2;
    o.n_texts = 3;
    o.method.rho = subsample > 0 ? 0 : 20;
    o.method.epsilon = subsample > 0 ? 9 : 0;
    o.method.adjacency = adjacency;
    o.method.subsample = subsample;
    o.method.max_per_unit = per_unit;
    o.method.pace = DPI_PACE_NONE; /* so that every token may tell a letter */
    dpi_release *release = open_release(&o);
    const dpi_claim *claim = dpi_release_claim(release);
    assert_int_equal(claim->method.max_per_unit, per_unit > 0 ? per_unit : 4);
    assert_int_equal(claim->n_records, dpi_claim_is_assigned(claim) ? 0 : 6);
    assert_int_equal(dpi_release_null_records(release), -1);
    draw_texts(release, texts);
    dpi_records_close(records);
}

/* A person with the same letter several times, between others' letters, counts as with one letter,
 * in one text and slot; letters after the first M do not count, whoever else has how many. */
static void test_units(void **state) {
    (void)state;
    static const char once[] = "who,text\na,the printer is jammed\nb,my screen is black\n"
                               "c,no mail since noon\nd,the door is locked\ne,it is too cold\n"
                               "f,the lift is out of order\n";
    static const char several[] =
        "who,text\na,the printer is jammed\na,the printer is jammed\nb,my screen is black\n"
        "c,no mail since noon\na,the printer is jammed\nd,the door is locked\ne,it is too cold\n"
        "f,the lift is out of order\nd,the door is locked\na,the printer is jammed\n"
        "a,another letter\nf,\na,and another one\n";
    static const char other[] =
        "who,text\na,the printer is jammed\na,Review of the Golden Mill: one star\n"
        "b,my screen is black\nc,no mail since noon\nd,the door is locked\ne,it is too cold\n"
        "f,the lift is out of order\n";
    static char x[TEXT_BYTES], y[TEXT_BYTES];
    char folder[256], path[512];
    make_dir(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/letters.csv", folder);
    for (int i = 0; i < 3; i++) {
        const int32_t adjacency = i == 1 ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
        const double q = i == 2 ? .9 : 0;
        draw_units(path, once, adjacency, q, 0, x);
        draw_units(path, several, adjacency, q, 0, y);
        assert_string_equal(x, y);
        draw_units(path, other, adjacency, q, 1, y);
        assert_string_equal(x, y);
    }
    draw_units(path, other, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, y);
    draw_units(path, once, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, x);
    assert_string_not_equal(x, y); /* the second letter counts */
    remove_dir(folder);
}

static void test_units_refused(void **state) {
    (void)state;
    dpi_release_options o = options_of(NULL);
    dpi_release *release = NULL;
    dpi_error err;
    o.method.max_per_unit = 2;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err,
                 "max_per_unit: found '2', allowed only with unit_field");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_line), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_read_once),
        cmocka_unit_test(test_no_records),   cmocka_unit_test(test_delta),
        cmocka_unit_test(test_parallel),     cmocka_unit_test(test_streams),
        cmocka_unit_test(test_parallel_cancel), cmocka_unit_test(test_parallel_failure),
        cmocka_unit_test(test_null_records), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_failure),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_units),        cmocka_unit_test(test_units_refused),
    };
    return cmocka_run_group_tests(tests, open_documents, close_documents);
}
