/* test_rounds.c - texts of earlier rounds in the prompts of later ones: prompts are those that an
 * oracle makes of the texts that were told, texts do not depend on what is drawn beside them, and
 * what cannot be is refused. Jobs that go on: journal/test_journal_release.c. */
#include "pipeline/prompts.h"
#include "pipeline/release/release.h"
#include "pipeline/release/run_claim.h"
#include "tests/support/support.h"

enum { N_TEXTS = 9, B = 2, N_RECORDS = 2 * N_TEXTS, T = 7, BYTES_MAX = 512, PROMPT_MAX = 700 };

static dpi_model *model;
static char folder[64];
static const char *const wards[] = {"heart", "skin"};

/* Every third record is of the second ward: 12 and 6 records, 6 and 3 texts. */
static int ward_of(int record) { return record % 3 == 2; }
static void record_text(int record, char text[32]) { snprintf(text, 32, "Note %d.", record); }

SETUP {
    char lines[2048], text[32];
    size_t n = 0;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    make_dir(folder, sizeof folder);
    for (int i = 0; i < N_RECORDS; i++) {
        record_text(i, text);
        n += (size_t)snprintf(lines + n, sizeof lines - n, "{\"text\":\"%s\",\"ward\":\"%s\"}\n",
                              text, wards[ward_of(i)]);
    }
    write_file(path_in(folder, "r.jsonl"), lines, n);
}

TEARDOWN {
    remove_dir(folder);
    dpi_model_close(model);
}

static dpi_records *open_records(bool labels) {
    dpi_records_options o;
    dpi_records *records;
    dpi_records_options_init(&o);
    o.label_field = labels ? "ward" : NULL;
    assert_ok(dpi_records_open(path_in(folder, "r.jsonl"), &o, &records, ERR));
    return records;
}

#define BYTES(text) ((dpi_bytes){text, sizeof(text) - 1})

/* Texts have some words. */
static const dpi_wording worded = {
    .struct_size = sizeof worded, .repeat_penalty = 1, .min_words = 2};

static dpi_release_options options_of(const dpi_records *records, int32_t n_released) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.batch = B, o.n_texts = N_TEXTS, o.n_tokens = T, o.n_parallel = 1;
    o.n_released = n_released;
    o.seeded = 1, o.seed = 5;
    o.method.rho = 2, o.method.delta = 1e-3;
    o.session.n_threads = 1;
    o.prompts.chat = DPI_CHAT_ZEPHYR;
    o.prompts.public_prompt = BYTES("Write.");
    o.wording = &worded;
    return o;
}

/* ---- What is seen of a release --------------------------------------------------------------- */

typedef struct seen_text {
    char text[BYTES_MAX];
    size_t n_bytes;
    bool is_begun;
    int32_t shared[PROMPT_MAX], slot[N_RECORDS][PROMPT_MAX]; /* the public prompt, private ones */
    size_t n_shared, n_slot[N_RECORDS];
} seen_text;

typedef struct seen {
    seen_text of[N_TEXTS];
    int32_t n_aside; /* most texts that were drawn at a time */
} seen;

static void copy_prompt(const int32_t *from, size_t n, int32_t *to, size_t *n_to) {
    assert_true(n <= PROMPT_MAX);
    if (n > 0)
        memcpy(to, from, n * sizeof *to);
    *n_to = n;
}

/* The prompts of texts that have begun since. */
static void look(const dpi_release *r, seen *s) {
    int32_t n = 0;
    for (const dpi_release_text *t = r->texts.first; t; t = t->next) {
        seen_text *to = &s->of[t->index];
        n += t->place != NULL;
        if (!t->place || to->is_begun)
            continue;
        const dpi_prompts *prompts =
            t->place->own ? t->place->own
                          : dpi_plan_prompts(&r->plan, dpi_source_label(&r->source, t->index));
        dpi_prompts_info info;
        dpi_prompts_info_init(&info);
        assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
        copy_prompt(dpi_prompts_public(prompts), (size_t)info.n_public, to->shared, &to->n_shared);
        for (size_t i = 0; i < r->source.n_slots; i++)
            copy_prompt(t->place->prompts.tokens[i], t->place->prompts.n_tokens[i], to->slot[i],
                        &to->n_slot[i]);
        to->is_begun = true;
    }
    s->n_aside = n > s->n_aside ? n : s->n_aside;
}

static void draw(const dpi_release_options *o, seen *s) {
    dpi_release *r;
    dpi_release_event e = {.type = DPI_EVENT_PROMPT};
    memset(s, 0, sizeof *s);
    assert_ok(dpi_release_open(o, &r, ERR));
    while (e.type != DPI_EVENT_NONE) {
        assert_ok(dpi_release_advance(r, &e, ERR));
        look(r, s);
        if (e.type != DPI_EVENT_TOKEN && e.type != DPI_EVENT_END)
            continue;
        seen_text *to = &s->of[e.index];
        assert_true(to->n_bytes + e.n_bytes <= BYTES_MAX);
        memcpy(to->text + to->n_bytes, e.text, e.n_bytes);
        to->n_bytes += e.n_bytes;
    }
    dpi_release_free(r);
}

/* ---- The oracle ------------------------------------------------------------------------------ */

/* By counting: text i is the k-th one of its label, in round k / n; it sees the texts of its label
 * whose round is the one before. */
static bool sees(const int32_t *label, int32_t n, int32_t i, int32_t j) {
    int32_t before_i = 0, before_j = 0;
    for (int32_t k = 0; k < i; k++)
        before_i += label[k] == label[i];
    for (int32_t k = 0; k < j; k++)
        before_j += label[k] == label[j];
    return label[i] == label[j] && before_j / n == before_i / n - 1;
}

/* Whether a prompt has the texts that text i sees, each as an answer to `asked`, then the record if
 * it is one, and then `last` of the user. */
static bool is_prompt(const seen *s, const int32_t *label, const dpi_release_options *o, int32_t i,
                      const char *asked, const char *record, const char *last,
                      const int32_t *found, size_t n) {
    dpi_turn turns[N_TEXTS + 1];
    int32_t wanted[PROMPT_MAX];
    size_t n_turns = 0, n_wanted;
    for (int32_t j = 0; j < N_TEXTS && o->n_released > 0; j++)
        if (sees(label, o->n_released, i, j) && s->of[j].n_bytes > 0)
            turns[n_turns++] =
                (dpi_turn){asked, s->of[j].text, strlen(asked), s->of[j].n_bytes};
    if (record)
        turns[n_turns++] = (dpi_turn){asked, record, strlen(asked), strlen(record)};
    assert_ok(dpi_turns_encode(model, o->prompts.chat, NULL, 0, turns, n_turns, last, strlen(last),
                               wanted, PROMPT_MAX, &n_wanted, ERR));
    return n == n_wanted && memcmp(found, wanted, n * sizeof *found) == 0;
}

/* By position, `label` of each text. Of a model that chats the record stands between two sentences;
 * of a base model it is a document. */
static void assert_prompts(const seen *s, const int32_t *label, const dpi_release_options *o,
                           bool labels) {
    int32_t n_before[2] = {0, 0}, n_filled = 0;
    for (int32_t i = 0; i < N_TEXTS; i++) {
        char asked[64] = "Write.", record[32], last[256];
        if (labels)
            snprintf(asked, sizeof asked, "About %s:", wards[label[i]]);
        assert_true(s->of[i].is_begun);
        assert_true(is_prompt(s, label, o, i, asked, NULL, asked, s->of[i].shared,
                              s->of[i].n_shared));
        for (int32_t k = 0; k < B; k++, n_before[label[i]]++) {
            int at = n_before[label[i]]; /* the number of the record in its ward, or in all */
            for (int32_t r = 0, n = 0; labels && r < N_RECORDS; r++)
                if (ward_of(r) == label[i] && n++ == n_before[label[i]])
                    at = r;
            record_text(at, record);
            snprintf(last, sizeof last, "Here is one document of a collection:\n\n%s\n\n"
                                        "The document ends here.\n\n%s", record, asked);
            const bool base = o->prompts.chat == DPI_CHAT_NONE;
            assert_true(is_prompt(s, label, o, i, asked, base ? record : NULL, base ? asked : last,
                                  s->of[i].slot[k], s->of[i].n_slot[k]));
            n_filled++;
        }
        assert_true(s->of[i].n_bytes > 0);
    }
    assert_int_equal(n_filled, N_RECORDS);
}

TEST(test_prompts) {
    static const int32_t none[N_TEXTS] = {0}, labelled[N_TEXTS] = {0, 0, 0, 0, 0, 0, 1, 1, 1};
    static const int32_t chats[] = {DPI_CHAT_ZEPHYR, DPI_CHAT_NONE};
    static seen s;
    for (int with = 0; with < 2; with++) {
        dpi_records *records = open_records(with);
        for (int32_t n = 0; n <= 4; n++) {
            dpi_release_options o = options_of(records, n);
            o.prompts.chat = chats[n % 2];
            o.n_parallel = n == 3 ? 3 : 1;
            if (with)
                o.prompts.public_prompt = BYTES("About {label}:");
            draw(&o, &s);
            assert_prompts(&s, with ? labelled : none, &o, with);
            assert_true(n != 3 || s.n_aside > 1);
        }
        dpi_records_close(records);
    }
}

/* An item of the list for each text that is seen, in both prompts, with what an answer begins and
 * ends with; behind the examples. */
TEST(test_list) {
    static const dpi_bytes stop = {"\"", 1}, example = {"Like this", 9};
    static seen s;
    dpi_wording w = worded;
    dpi_records *records = open_records(false);
    w.answer = BYTES(" \""), w.stops = &stop, w.n_stops = 1;
    dpi_release_options o = options_of(records, 2);
    o.prompts.chat = DPI_CHAT_NONE;
    o.prompts.public_prompt = (dpi_bytes){NULL, 0}, o.prompts.description = BYTES("notes");
    o.prompts.examples = &example, o.prompts.n_examples = 1;
    o.wording = &w;
    draw(&o, &s);
    for (int32_t i = 0; i < N_TEXTS; i++)
        for (int32_t is_private = 0; is_private < 2; is_private++) {
            char list[2048] = "", record[32];
            int32_t wanted[PROMPT_MAX], k = 1;
            size_t n = 0, n_wanted, more;
            const seen_text *t = &s.of[i];
            if (!is_private)
                n += (size_t)sprintf(list, "%d. \"Like this\"\n", (int)k++);
            for (int32_t j = i / 2 * 2 - 2; j >= 0 && j < i / 2 * 2; j++)
                if (s.of[j].n_bytes > 0)
                    n += (size_t)sprintf(list + n, "%d. \"%.*s\"\n", (int)k++,
                                         (int)s.of[j].n_bytes, s.of[j].text);
            record_text(i * B, record);
            if (is_private)
                n += (size_t)sprintf(list + n, "%d. \"%s\"\n", (int)k++, record);
            n += (size_t)sprintf(list + n, "%d.", (int)k);
            static const char task[] = "A list of made-up notes:\n\n";
            assert_ok(dpi_turns_encode(model, DPI_CHAT_NONE, NULL, 0, NULL, 0, task,
                                       sizeof task - 1, wanted, PROMPT_MAX, &n_wanted, ERR));
            assert_ok(dpi_tokenize(model, list, n, 0, wanted + n_wanted, PROMPT_MAX - n_wanted,
                                   &more, ERR));
            n_wanted += more;
            assert_ok(dpi_tokenize(model, " \"", 2, 0, wanted + n_wanted, PROMPT_MAX - n_wanted,
                                   &more, ERR));
            n_wanted += more;
            assert_int_equal(is_private ? t->n_slot[0] : t->n_shared, n_wanted);
            assert_memory_equal(is_private ? t->slot[0] : t->shared, wanted,
                                n_wanted * sizeof *wanted);
        }
    dpi_records_close(records);
}

/* ---- Other ways to form batches, and none ---------------------------------------------------- */

static const int32_t one_label[N_TEXTS] = {0};

/* The record whose prompt a slot has; -1: none's. */
static int32_t find_record(const seen *s, const dpi_release_options *o, int32_t i, int32_t k) {
    const char *asked = o->prompts.public_prompt.data;
    char record[32];
    int32_t found = -1;
    for (int32_t r = 0; r < N_RECORDS; r++) {
        record_text(r, record);
        if (is_prompt(s, one_label, o, i, asked, record, asked, s->of[i].slot[k],
                      s->of[i].n_slot[k]))
            found = r;
    }
    return found;
}

/* Each private prompt has the texts that are seen and one record, which is in no other: of records
 * that are read when the batches are made, or when their text begins. */
TEST(test_assigned) {
    static seen s;
    dpi_records *records = open_records(false);
    for (int drawn = 0; drawn < 2; drawn++) {
        dpi_release_options o = options_of(records, 2);
        bool is_found[N_RECORDS] = {false};
        int32_t n_found = 0;
        o.prompts.chat = DPI_CHAT_NONE;
        o.method.adjacency = drawn ? DPI_ADJACENCY_REPLACE_BY_NULL : DPI_ADJACENCY_ADD_REMOVE;
        if (drawn)
            o.method.subsample = .7, o.method.rho = 0, o.method.epsilon = 5;
        draw(&o, &s);
        for (int32_t i = 0; i < N_TEXTS; i++)
            for (int32_t k = 0; k < N_RECORDS && s.of[i].n_slot[k] > 0; k++) {
                const int32_t record = find_record(&s, &o, i, k);
                assert_in_range(record, 0, N_RECORDS - 1);
                assert_false(is_found[record]);
                is_found[record] = true;
                n_found++;
            }
        assert_in_range(n_found, drawn ? N_RECORDS / 3 : N_RECORDS, N_RECORDS);
    }
    dpi_records_close(records);
}

/* The likeliest tokens behind a prompt, one after the other: the end of a text, or T of them. */
static void write_likeliest(const int32_t *prompt, size_t n, seen_text *to) {
    dpi_session *session = open_session(model, NULL, 1, PROMPT_MAX + T);
    dpi_model_info info;
    dpi_decoder *decoder;
    const char *piece;
    size_t n_piece;
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, ERR));
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    assert_ok(dpi_session_prefill(session, 0, prompt, n, NULL, ERR));
    to->n_bytes = 0;
    for (int32_t t = 0; t < T; t++) {
        const float *logits = dpi_session_logits(session, 0);
        int32_t best = 0;
        for (int32_t i = 0; i < info.n_vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        if (dpi_token_is_eog(model, best))
            break;
        assert_ok(dpi_decoder_push(decoder, best, &piece, &n_piece, ERR));
        memcpy(to->text + to->n_bytes, piece, n_piece);
        to->n_bytes += n_piece;
        assert_ok(dpi_session_prefill(session, 0, &best, 1, NULL, ERR));
    }
    dpi_decoder_free(decoder);
    dpi_session_free(session);
}

/* Plain texts are what the model says behind these prompts: from the public one, or from that of
 * one record, which is in each. */
TEST(test_plain) {
    static seen s;
    static seen_text wanted;
    dpi_records *records = open_records(false);
    for (int32_t reference = -1; reference <= 4; reference += 5) {
        dpi_release_options o = options_of(records, 2);
        o.prompts.chat = DPI_CHAT_NONE;
        o.method.method = DPI_METHOD_PLAIN, o.reference = reference, o.batch = 0;
        o.method.tau = 0;
        o.prompts.public_prompt = BYTES("The patient was admitted");
        draw(&o, &s);
        for (int32_t i = 0; i < N_TEXTS; i++) {
            const seen_text *t = &s.of[i];
            const char *asked = o.prompts.public_prompt.data;
            assert_true(t->n_bytes > 0);
            assert_true(is_prompt(&s, one_label, &o, i, asked, NULL, asked, t->shared,
                                  t->n_shared));
            if (reference >= 0)
                assert_int_equal(find_record(&s, &o, i, 0), reference);
            write_likeliest(reference >= 0 ? t->slot[0] : t->shared,
                            reference >= 0 ? t->n_slot[0] : t->n_shared, &wanted);
            size_t at = 0; /* white space at both ends is not shown */
            while (at < wanted.n_bytes && strchr(" \n", wanted.text[at]))
                at++;
            assert_true(wanted.n_bytes - at >= t->n_bytes);
            assert_memory_equal(wanted.text + at, t->text, t->n_bytes);
        }
    }
    dpi_records_close(records);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool is_same(const seen *a, const seen *b, int32_t i) {
    return a->of[i].n_bytes == b->of[i].n_bytes &&
           memcmp(a->of[i].text, b->of[i].text, a->of[i].n_bytes) == 0;
}

/* Whatever is drawn beside a text it is the same; those of the first round are those of a run
 * without rounds, and some later one is not. */
TEST(test_parallel) {
    static seen one, other, without;
    dpi_records *records = open_records(false);
    dpi_release_options o = options_of(records, 0);
    int32_t n_changed = 0;
    draw(&o, &without);
    o.n_released = 3;
    draw(&o, &one);
    assert_int_equal(one.n_aside, 1);
    for (int32_t n = 2; n <= 8; n++) {
        o.n_parallel = n;
        draw(&o, &other);
        assert_int_equal(other.n_aside, n < 3 ? n : 3); /* a round waits for the one before */
        for (int32_t i = 0; i < N_TEXTS; i++)
            assert_true(is_same(&one, &other, i));
    }
    for (int32_t i = 0; i < N_TEXTS; i++) {
        assert_true(i >= 3 || is_same(&one, &without, i));
        n_changed += !is_same(&one, &without, i);
    }
    assert_true(n_changed > 0);
    dpi_records_close(records);
}

/* ---- Length ---------------------------------------------------------------------------------- */

/* A text that is empty is in no prompt. Where the context has no room for all texts of a round, the
 * last ones are there. */
TEST(test_room) {
    static char many[8000];
    static const char *const ended[] = {many, "Two.", "", "Four."};
    dpi_records *records = open_records(false);
    dpi_release_options o = options_of(records, 4);
    dpi_release *r;
    dpi_rounds rounds;
    dpi_prompts *made, *wanted;
    dpi_prompts_info a, b;
    memset(many, '!', sizeof many - 1);
    assert_ok(dpi_release_open(&o, &r, ERR));
    assert_ok(dpi_release_begin(r, ERR));
    assert_ok(dpi_rounds_open(&rounds, &r->plan, ERR));
    for (int32_t i = 0; i < 4; i++)
        assert_ok(dpi_rounds_put(&rounds, i, ended[i], strlen(ended[i]), ERR));
    assert_ok(dpi_rounds_prompts(&rounds, &r->source, 3, &made, ERR));
    assert_null(made);
    assert_ok(dpi_rounds_prompts(&rounds, &r->source, 4, &made, ERR));
    o.prompts.examples = (const dpi_bytes[]){{"Two.", 4}, {"Four.", 5}};
    o.prompts.n_examples = 2;
    assert_ok(dpi_prompts_create(model, &o.prompts, r->plan.options.session.n_ctx - T, &wanted,
                                 ERR));
    dpi_prompts_info_init(&a), dpi_prompts_info_init(&b);
    assert_ok(dpi_prompts_info_get(made, &a, ERR));
    assert_ok(dpi_prompts_info_get(wanted, &b, ERR));
    assert_int_equal(a.n_public, b.n_public);
    assert_memory_equal(dpi_prompts_public(made), dpi_prompts_public(wanted),
                        (size_t)a.n_public * sizeof(int32_t));
    dpi_prompts_free(made);
    dpi_prompts_free(wanted);
    dpi_rounds_free(&rounds);
    dpi_release_free(r);
    dpi_records_close(records);
}

/* Of texts that are kept and prompts that are made of them: all that can fail for memory does so
 * once, and leaves nothing. */
TEST(test_memory) {
    dpi_records *records = open_records(false);
    const dpi_release_options o = options_of(records, 2);
    dpi_release *r;
    int32_t n_failed = 0;
    assert_ok(dpi_release_open(&o, &r, ERR));
    assert_ok(dpi_release_begin(r, ERR));
    for (int64_t n = 1;; n++) {
        dpi_rounds rounds;
        dpi_prompts *made = NULL;
        fail_allocation(n);
        dpi_status status = dpi_rounds_open(&rounds, &r->plan, ERR);
        for (int32_t i = 0; i < 2 && status == DPI_STATUS_OK; i++)
            status = dpi_rounds_put(&rounds, i, "One.", 4, ERR);
        if (status == DPI_STATUS_OK)
            status = dpi_rounds_prompts(&rounds, &r->source, 2, &made, ERR);
        fail_allocation(0);
        dpi_prompts_free(made);
        dpi_rounds_free(&rounds);
        if (status == DPI_STATUS_OK)
            break;
        assert_int_equal(status, DPI_STATUS_MEMORY);
        n_failed++;
    }
    assert_true(n_failed > 10);
    dpi_release_free(r);
    dpi_records_close(records);
}

/* A plan counts with n texts of T tokens in both prompts, whatever they are: here with a text of so
 * many tokens. */
TEST(test_lengths) {
    enum { N = 4, LONG = 40 };
    char text[LONG + 1] = "";
    int32_t ids[4 * LONG + 8];
    size_t n_ids = 0;
    dpi_bytes texts[N];
    dpi_release_plan plan;
    dpi_release *r;
    dpi_prompts *wanted;
    dpi_prompts_info info;
    dpi_records *records = open_records(false);
    for (size_t n = 0; n < LONG && n_ids < LONG; text[++n] = '\0') {
        text[n] = "%^"[n % 2];
        assert_ok(dpi_tokenize(model, text, n + 1, 0, ids, sizeof ids / sizeof *ids, &n_ids, ERR));
    }
    assert_int_equal(n_ids, LONG);
    for (int32_t i = 0; i < N; i++)
        texts[i] = (dpi_bytes){text, strlen(text)};
    dpi_release_options o = options_of(records, N);
    o.n_tokens = LONG;
    dpi_release_plan_init(&plan);
    assert_ok(dpi_release_open(&o, &r, ERR));
    dpi_claim claim; /* says how many, too */
    dpi_claim_of_run(dpi_release_run(r), &claim);
    assert_int_equal(claim.released, N);
    assert_ok(dpi_release_plan_get(r, &plan, ERR));
    assert_ok(dpi_prompts_create_released(model, &o.prompts, texts, N, plan.n_ctx, &wanted, ERR));
    dpi_prompts_info_init(&info);
    assert_ok(dpi_prompts_info_get(wanted, &info, ERR));
    assert_in_range(plan.n_prompt_public, info.n_public, info.n_public + 2 * N);
    assert_in_range(plan.n_prompt_shared, info.n_prefix, info.n_prefix + 2 * N);
    dpi_prompts_free(wanted);
    dpi_release_free(r);
    dpi_records_close(records);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static int32_t no_text(void *user) {
    (void)user;
    return -1;
}

TEST(test_refusals) {
    dpi_bytes many[60];
    dpi_records *records = open_records(false);
    const dpi_release_options good = options_of(records, 4);
    dpi_release_options o;
    dpi_release *r;
    dpi_wording w;
    dpi_wording_init(&w);
    w.answer = BYTES("So"), w.keep_answer = 1;
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = BYTES("a");
    assert_ok(dpi_release_options_check(&good, ERR));
#define REFUSED(set, status, part)                                                                 \
    o = good, set, assert_status(dpi_release_open(&o, &r, ERR), DPI_STATUS_##status, part)
    REFUSED(o.n_released = -1, ARG, "released is -1, must be 0..63");
    REFUSED(o.n_released = 64, ARG, "released is 64");
    REFUSED(o.n_released = N_TEXTS, ARG, "released: found 9, allowed 0..8");
    REFUSED((o.n_shards = 2), UNSUPPORTED, "one process");
    REFUSED((o.next_text = no_text), UNSUPPORTED, "one process");
    REFUSED(o.wording = &w, ARG, "keep_answer");
    REFUSED((o.prompts.examples = many, o.prompts.n_examples = 60), ARG, "4, must be 0..3");
    REFUSED((o.n_tokens = 60, o.session.n_ctx = 200), ARG, "larger context");
#undef REFUSED
    dpi_records_close(records);
}
