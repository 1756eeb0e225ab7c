/* test_private.c - private answers of a real server in this process, with random bits that are
 * fixed. Everything that a client can see is compared on neighbouring datasets, byte for byte; and
 * answers that are drawn side by side with those that are drawn alone. */
#include <jansson.h>
#include <pthread.h>

#include "dpinfer/schema.h"
#include "serve/datasets.h"
#include "tests/serve/service.h"

enum { N_RECORDS = 12 };

/* What is random or a date, by no record: ids and times become '#'. */
static void hide(char *reply, const char *before, const char *allowed) {
    for (char *at = reply; (at = strstr(at, before)) != NULL;) {
        at += strlen(before);
        memset(at, '#', strspn(at, allowed));
    }
}

static void normalise(char *reply) {
    hide(reply, "cmpl-", "0123456789abcdef");
    hide(reply, "\"created\":", "0123456789");
    hide(reply, "\"date\":\"", "0123456789-:TZ");
    hide(reply, "Date: ", "ADFJMNOSTWabcdefghilnoprtuvyGMT 0123456789,:");
}

/* Without the sizes of its chunks: where it is cut follows from how fast a client reads. */
static void join_chunks(char *body) {
    char *to = body;
    for (char *at = body, *end; *at; at += 2) {
        const size_t n = strtoul(at, &end, 16);
        assert_true(end > at && strncmp(end, "\r\n", 2) == 0);
        at = end + 2;
        memmove(to, at, n);
        to += n;
        at += n;
    }
    *to = '\0';
}

/* How many tokens an event has is the pace, which the operator allows clients to see. The rest of a
 * stream is one text, and why it ended. */
static void join_stream(char *reply) {
    char *body = (char *)(uintptr_t)body_of(reply), *to = body;
    if (!strstr(reply, "text/event-stream"))
        return;
    join_chunks(body);
    char *last = strstr(body, "\"delta\":{},");
    assert_non_null(last);
    for (char *at = body; (at = strstr(at, "\"content\":\"")) != NULL && at < last;) {
        at += 11;
        size_t n = 0;
        while (at[n] && at[n] != '"') /* an escaped quote is text */
            n += at[n] == '\\' && at[n + 1] ? 2 : 1;
        memmove(to, at, n);
        to += n;
        at += n;
    }
    memmove(to, last, strlen(last) + 1);
}

/* ---- Neighbouring datasets ------------------------------------------------------------------- */

/* Letters of which one, if any, is another line; owned. */
static char *letters(int changed, const char *line, const char *fields) {
    char *text = owned(calloc(1, 1 << 20)), *at = text;
    for (int i = 0; i < N_RECORDS; i++)
        if (i == changed)
            at += sprintf(at, "%s\n", line);
        else
            at +=
                sprintf(at, "{\"text\": \"Ticket %d: the printer of room %d does not print.\"%s}\n",
                        7919 * i, 31 * i, fields);
    return text;
}

/* What clients do: each path, answers whole and streamed, refusals, a key that is there again. */
#define SMALL "\"epsilon\": 0.0002"
#define ANSWER LETTERS(SMALL, "\"max_tokens\": 12, " QUESTION)
static const struct {
    int code;
    const char *method, *path, *head, *body;
} steps[] = {
    {200, "GET", "/health", "", ""},
    {200, "GET", "/v1/models", "", ""},
    {200, "POST", "/v1/privacy/plan", "", ANSWER},
    {200, "POST", CHAT, "Idempotency-Key: a\r\n", ANSWER},
    {200, "POST", CHAT, "Idempotency-Key: a\r\n", ANSWER},
    {200, "POST", CHAT, "",
     LETTERS(SMALL ", \"batch\": 5, \"tokens\": 9",
             "\"stream\": true, \"stream_options\": {\"include_usage\": true}, " QUESTION)},
    {200, "POST", "/v1/completions", "",
     LETTERS(SMALL ", \"batch\": 1", "\"prompt\": \"Write a ticket.\", \"max_tokens\": 8, "
                                     "\"response_format\": {\"type\": \"json_object\"}")},
    {403, "POST", CHAT, "", LETTERS("\"epsilon\": 90", "\"max_tokens\": 12, " QUESTION)},
    {400, "POST", CHAT, "", LETTERS("\"epsilon\": 1", "\"max_tokens\": 600, " QUESTION)},
    {400, "POST", CHAT, "X-Stainless-Retry-Count: 1\r\n", ANSWER},
    {200, "POST", CHAT, "X-Stainless-Retry-Count: 1\r\nIdempotency-Key: a\r\n", ANSWER},
    {422, "POST", CHAT, "Idempotency-Key: a\r\n", LETTERS("\"epsilon\": 0.02", QUESTION)},
    {200, "GET", "/v1/privacy/budget", "", ""},
    {200, "GET", "/v1/privacy/budget/letters", "", ""},
    {200, "GET", "/metrics", "", ""},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

/* All replies, and the reports of all answers; owned. */
static char *see_all(const char *lines, const char *more) {
    service v = {0};
    char *all = owned(calloc(1, N_STEPS * REPLY_MAX)), path[160];
    start(&v, lines, more, true);
    for (int i = 0; i < N_STEPS; i++) {
        char *reply = expect_reply(&v, steps[i].code, steps[i].method, steps[i].path, steps[i].head,
                                   steps[i].body);
        const char *link = strstr(reply, "\"report\":\"");
        const bool has_report = link && sscanf(link, "\"report\":\"%150[^\"]", path) == 1;
        join_stream(reply);
        strcat(all, reply);
        if (has_report)
            strcat(all, expect_reply(&v, 200, "GET", path, "", ""));
    }
    normalise(all);
    forget(&v);
    return all;
}

static void compare(const char *what, const char *a, const char *b) {
    const size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    if (a[i] != b[i])
        fail_msg("%.40s: a client sees it: ...%.*s... and ...%.*s...", what, 200,
                 a + (i > 60 ? i - 60 : 0), 200, b + (i > 60 ? i - 60 : 0));
}

/* The budget of a token is so small that the same bits draw the same tokens: what is left to differ
 * is everything else. At epsilon 0.01 four private tokens of a pace did change on one instruction
 * set: bits that are the same fall near the border of some candidate where there are many. */
TEST(tells_nothing_of_a_record) {
    static char longer[40000];
    memset(longer, 'x', sizeof longer - 1);
    memcpy(longer, "{\"text\": \"", 10);
    memcpy(longer + sizeof longer - 4, "\"}", 3);
    const char *const others[] = {"{\"text\": \"\"}",
                                  "no JSON at all",
                                  longer,
                                  "{\"text\": \"My name is Anna.\"}",
                                  "{\"text\": 5}",
                                  "{}"};
    const char *all = see_all(letters(-1, NULL, ""), "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int place = 0; place < N_RECORDS; place += 7)
            compare(others[i], all, see_all(letters(place, others[i], ""), ""));
}

/* Units: how many records one has, and which of them are null. */
TEST(tells_nothing_of_a_unit) {
    static const char *const units[] = {
        "{\"text\": \"My name is Anna.\", \"who\": \"p3\"}\n",
        "{\"text\": \"\", \"who\": \"p3\"}\n",
        "{\"text\": \"x\", \"who\": \"p3\"}\n{\"text\": \"y\", \"who\": \"p3\"}\n"
        "{\"text\": \"z\", \"who\": \"p3\"}\n",
    };
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        char text[1024], *at = text;
        for (int k = 0; k < 6; k++)
            if (k == 3)
                at += sprintf(at, "%s", units[i]);
            else
                at += sprintf(at, "{\"text\": \"The printer.\", \"who\": \"p%d\"}\n", k);
        const char *seen =
            see_all(text, ",unit=who,scope=unit,pace=top,pace-theta=.5,pace-tokens=4");
        if (first)
            compare(units[i], first, seen);
        first = seen;
    }
}

/* ---- Side by side ---------------------------------------------------------------------------- */

typedef struct sender {
    const service *v;
    char body[512];
    char *reply;
} sender;

static void *send_one(void *user) {
    sender *one = user;
    one->reply = send_request(one->v, "POST", CHAT, "", one->body);
    return NULL;
}

/* Which batch answers follows from the number of an answer: with one batch all have the same. */
TEST(has_the_bits_that_it_has_alone) {
    enum { N = 7 };
    sender senders[N];
    pthread_t threads[N];
    service v = {0};
    char *alone[N];
    start(&v, letters(-1, NULL, ""), ",batch=16", false);
    for (int i = 0; i < N; i++) {
        senders[i].v = &v;
        if (i == 4) /* one without records among them */
            strcpy(senders[i].body, "{\"seed\": 3, \"max_tokens\": 20, " QUESTION "}");
        else
            snprintf(senders[i].body, sizeof senders[i].body,
                     LETTERS("\"epsilon\": 0.1%d", "\"max_tokens\": %d, " QUESTION), i, 5 + 3 * i);
        send_one(&senders[i]);
        alone[i] = member(senders[i].reply, "choices", "message");
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_one, &senders[i]), 0);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    forget(&v); /* before a check fails: nothing of this frame may be in use then */
    for (int i = 0; i < N; i++)
        assert_string_equal(member(senders[i].reply, "choices", "message"), alone[i]);
}

/* What the answers to several questions say, one after the other, batch after batch; all [n]. */
static void answer_all(const service *v, char **all, int n) {
    static const char *const kinds[] = {"problem do people have", "room is it", "problem is rare"};
    char question[512];
    for (int i = 0; i < n; i++) {
        snprintf(question, sizeof question,
                 LETTERS("\"epsilon\": 900", "\"max_tokens\": %d, \"messages\": [%s{\"role\": "
                                             "\"user\", \"content\": \"Which %s?\"}]"),
                 5 + i, i % 4 == 3 ? "{\"role\": \"system\", \"content\": \"Be short.\"}, " : "",
                 kinds[i / 3 % 3]);
        all[i] = member(expect_reply(v, 200, "POST", CHAT, "", question), "choices", "message");
    }
}

/* The same texts whether caches of records are kept or not. With this budget texts follow the
 * records closely. */
TEST(has_the_bits_that_it_has_without_caches) {
    enum { N = 15 };
    char *lines = letters(5, "{\"text\": \"\"}", ", \"who\": \"x\""), *texts[2][N];
    int n_others = 0;
    for (int i = 0; i < 2; i++) {
        service v = {.keeps_nothing = i == 1};
        start(&v, lines, ",batch=4,epsilon=100000", false);
        answer_all(&v, texts[i], N);
        forget(&v);
    }
    for (int i = 0; i < N; i++) {
        assert_string_equal(texts[0][i], texts[1][i]);
        n_others += strcmp(texts[0][i], texts[0][i % 3]) != 0;
    }
    assert_true(n_others > N / 2); /* questions and batches matter */
}

/* ---- Keys and budgets ------------------------------------------------------------------------ */

static const char body[] = LETTERS("\"epsilon\": 3", "\"max_tokens\": 10, " QUESTION);

/* Whoever reads the file when a token is drawn finds its charge, and whoever reads the metrics does
 * not see it come. */
TEST(charges_before_it_draws) {
    service v = {0};
    start(&v, letters(-1, NULL, ""), "", false);
    for (v.n_charges = 1; v.n_charges <= 3; v.n_charges++) {
        const char *reply = expect_reply(&v, 200, "POST", CHAT, "", body);
        v.n_tokens += atoi(member(reply, "usage", "completion_tokens"));
    }
    assert_true(v.n_draws > 2);
    assert_int_equal(v.n_early, 0);
    assert_int_equal(v.n_told, 0);
    assert_int_equal(count_tokens(&v), v.n_tokens);
    forget(&v);
}

/* The text is of the schema, whatever the records say; both prompts have the earlier turns; the
 * report has the grammar. */
TEST(has_a_form_and_turns) {
    static const char schema[] = "{\"const\":\"yes\"}";
    static const char formed[] = "\"messages\": [{\"role\": \"user\", \"content\": \"Hi.\"}, "
                              "{\"role\": \"assistant\", \"content\": \"Hello.\"}, {\"role\": "
                              "\"user\", \"content\": \"Which problem do people have?\"}], "
                              "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
                              "{\"schema\": {\"const\": \"yes\"}}}, \"max_tokens\": 16";
    service v = {0};
    char one[1024], path[160], digest[48];
    int n[2][2]; /* tokens of the public prompt: with a dataset, with turns */
    start(&v, letters(-1, NULL, ""), "", false);
    for (int i = 0; i < 2; i++) {
        const char *about = i ? "\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 3}, " : "";
        snprintf(one, sizeof one, "{%s%s, \"max_tokens\": 16}", about, QUESTION);
        n[i][0] = atoi(member(expect_reply(&v, 200, "POST", CHAT, "", one), "usage",
                              "prompt_tokens"));
        snprintf(one, sizeof one, "{%s%s}", about, formed);
        char *reply = expect_reply(&v, 200, "POST", CHAT, "", one);
        n[i][1] = atoi(member(reply, "usage", "prompt_tokens"));
        assert_non_null(strstr(member(reply, "choices", "message"), "\"\\\"yes\\\"\""));
        if (i)
            assert_int_equal(sscanf(member(reply, "privacy", "report"), "\"%150[^\"]", path), 1);
    }
    assert_true(n[0][1] > n[0][0]);
    assert_int_equal(n[1][1] - n[1][0], n[0][1] - n[0][0]);
    dpi_grammar *grammar;
    assert_ok(dpi_grammar_from_schema(schema, sizeof schema - 1, &grammar, ERR));
    snprintf(digest, sizeof digest, "\"grammar\": \"%016llx\"",
             (unsigned long long)dpi_grammar_digest(grammar));
    dpi_grammar_free(grammar);
    assert_non_null(strstr(expect_reply(&v, 200, "GET", path, "", ""), digest));
    forget(&v);
}

/* A key that is there again gives what was released, though bits and records are others by now. */
TEST(releases_an_answer_once) {
    service v = {0};
    start(&v, letters(-1, NULL, ""), "", true);
    const char *first = expect_reply(&v, 200, "POST", CHAT, "Idempotency-Key: k 1\r\n", body);
    assert_int_equal(count_charges(&v), 1);
    v.byte = 0xf1;
    const char *again = send_request(&v, "POST", CHAT, "Idempotency-Key: k 1\r\n", body);
    assert_string_equal(body_of(first), body_of(again));
    const char *other = send_request(&v, "POST", CHAT, "Idempotency-Key: k 2\r\n", body);
    assert_string_not_equal(member(first, "choices", "message"),
                            member(other, "choices", "message")); /* these bits draw others */
    assert_int_equal(count_charges(&v), 2);
    expect_reply(&v, 422, "POST", "/v1/completions", "Idempotency-Key: k 1\r\n",
                 LETTERS("\"epsilon\": 1", "\"prompt\": \"x\""));
    assert_int_equal(count_charges(&v), 2);
    forget(&v);
}

/* Alice may spend what one answer costs and a little, Bob what the dataset has, Carol nothing. */
TEST(holds_shares) {
    static const char tokens[] =
        "alice ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad letters=0.2\n"
        "bob e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
        "carol 3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282 letters=0\n";
    static const struct {
        int code;
        const char *head;
    } all[] = {
        {200, "Authorization: Bearer abc\r\nIdempotency-Key: k\r\n"},
        {403, "Authorization: Bearer abc\r\n"},
        {200, "Authorization: Bearer \r\nIdempotency-Key: k\r\n"}, /* a key of his own */
        {403, "Authorization: Bearer abc\r\n"},
        {200, "Authorization: Bearer abc\r\nIdempotency-Key: k\r\n"}, /* free */
        {200, "Authorization: Bearer \r\n"},
        {401, "Authorization: Bearer abd\r\n"},
        {403, "Authorization: Bearer xyz\r\n"},
    };
    service v = {0};
    char report[160];
    assert_ok(principals_parse("tokens", tokens, strlen(tokens), &v.p, ERR));
    start(&v, letters(-1, NULL, ""), "", false);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *reply = expect_reply(&v, all[i].code, "POST", CHAT, all[i].head, body);
        if (i == 0)
            assert_int_equal(sscanf(member(reply, "privacy", "report"), "\"%150[^\"]", report), 1);
        if (all[i].code == 403) {
            const double left = atof(member(reply, "error", "remaining"));
            assert_string_equal(member(reply, "error", "type"), "\"privacy_budget_exceeded\"");
            assert_true(strstr(all[i].head, "xyz") ? left == 0 : left > 0 && left < .2 * 5);
        }
    }
    assert_int_equal(count_charges(&v), 3);
    expect_reply(&v, 200, "GET", report, "Authorization: Bearer abc\r\n", "");
    expect_reply(&v, 404, "GET", report, "Authorization: Bearer \r\n", ""); /* it is Alice's */
    forget(&v);
    principals_free(v.p);
}

/* What the first answer says and the fourth, of three units that take turns: the budget of each
 * allows one. */
static void answer_of_units(const char *text_of_first, char **first, char **fourth) {
    service v = {0};
    char lines[512], *said[4];
    snprintf(lines, sizeof lines,
             "{\"text\": \"%s\", \"who\": \"p0\"}\n{\"text\": \"The lamp is dark.\", \"who\": "
             "\"p1\"}\n{\"text\": \"Ticket 7: no water in room 31.\", \"who\": \"p2\"}\n",
             text_of_first);
    start(&v, lines, ",unit=who,scope=unit,batch=1,epsilon=500,pace=none", false);
    for (int i = 0; i < 4; i++)
        said[i] = member(expect_reply(&v, 200, "POST", CHAT, "",
                                      LETTERS("\"epsilon\": 800", "\"max_tokens\": 24, " QUESTION)),
                         "choices", "message");
    assert_int_equal(count_charges(&v), 4);
    forget(&v);
    *first = said[0], *fourth = said[3];
}

/* A unit that cannot pay is null, and nothing else tells it. */
TEST(has_a_sum_for_each_unit) {
    char *first, *paid, *first_null, *null;
    answer_of_units("Ticket 5: the printer is red.", &first, &paid);
    answer_of_units("", &first_null, &null);
    assert_string_not_equal(first, first_null); /* its record matters */
    assert_string_equal(paid, null);
    assert_string_equal(null, first_null);
}

/* What is said about these records of p0, p1 and nobody, in one batch. */
static const char *answer_about(const char *lines) {
    service v = {0};
    start(&v, lines, ",unit=who,scope=unit,batch=3,max-per-unit=3,epsilon=100000,pace=none", false);
    const char *said = member(
        expect_reply(&v, 200, "POST", CHAT, "",
                     LETTERS("\"epsilon\": 800", "\"max_tokens\": 24, " QUESTION)),
        "choices", "message");
    forget(&v);
    return said;
}

/* Each unit has its own records, as many as it may, and has paid for itself: which of them stands
 * first changes nothing, and each record does. One without an ID is null. */
TEST(has_all_records_of_a_unit) {
#define RECORD(text, who) "{\"text\": \"" text "\", \"who\": " who "}\n"
#define TWO RECORD("Ticket 5: the printer is red.", "0") RECORD("No water in room 31.", "0")
#define P0 TWO RECORD("A door that does not close.", "0")
#define P1 RECORD("The lamp is dark.", "1")
#define NOBODY RECORD("My mail is lost.", "null")
    const char *all = answer_about(P0 P1 NOBODY);
    assert_string_equal(all, answer_about(P1 P0 NOBODY));
    assert_string_equal(all, answer_about(NOBODY P0 P1));
    assert_string_equal(all, answer_about(P1 NOBODY P0));
    assert_string_not_equal(all, answer_about(TWO P1 NOBODY));
    assert_string_not_equal(all, answer_about(P0 NOBODY NOBODY));
#undef RECORD
#undef TWO
#undef P0
#undef P1
#undef NOBODY
}

/* What questions are told, each about the next label of `labels`, '-' none,
 * and then with a delta of its own. */
static void answer_of_labels(const char *lines, const char *labels, const char **said) {
    service v = {0};
    char question[512], more[32], path[160];
    start(&v, lines, ",label=kind,batch=1,epsilon=100000,pace=none", false);
    for (int i = 0; labels[i]; i++) {
        const bool has_label = labels[i] != '-';
        if (has_label)
            snprintf(more, sizeof more, ", \"label\": \"%c\"", labels[i]);
        else
            snprintf(more, sizeof more, ", \"delta\": 1e-9");
        snprintf(question, sizeof question,
                 LETTERS("\"epsilon\": 800%s", "\"max_tokens\": 24, " QUESTION), more);
        const char *reply = expect_reply(&v, 200, "POST", CHAT, "", question);
        said[i] = member(reply, "choices", "message");
        assert_true(atof(member(reply, "privacy", "delta")) == (has_label ? 1e-4 : 1e-9));
        assert_int_equal(sscanf(member(reply, "privacy", "report"), "\"%150[^\"]", path), 1);
        const char *report = expect_reply(&v, 200, "GET", path, "", "");
        assert_int_equal(strstr(report, "\"labels\": \"public\"") != NULL, has_label);
    }
    forget(&v);
}

/* Each label's batches are those that it has alone, one after the other, whatever others are asked
 * about between them. */
TEST(counts_within_a_label) {
    static const char *const lines[] = {
        "{\"text\": \"Ticket 5: the printer is red.\", \"kind\": \"a\"}\n",
        "{\"text\": \"The lamp is dark.\", \"kind\": \"b\"}\n",
        "{\"text\": \"No water in room 31.\", \"kind\": \"b\"}\n",
        "{\"text\": \"My mail is lost.\", \"kind\": \"a\"}\n",
        "{\"text\": \"Ticket 7: a door that does not close.\", \"kind\": \"b\"}\n"};
    static const char order[] = "ab-babab";
    const char *alone[2][4], *both[sizeof order - 1];
    char all[512] = "", of[2][512] = {"", ""};
    for (int i = 0; i < 5; i++) {
        strcat(all, lines[i]);
        strcat(of[strstr(lines[i], "\"b\"") != NULL], lines[i]);
    }
    answer_of_labels(of[0], "aaa", alone[0]);
    answer_of_labels(of[1], "bbbb", alone[1]);
    assert_string_not_equal(alone[0][0], alone[0][1]); /* the records matter */
    assert_string_not_equal(alone[1][0], alone[1][1]);
    answer_of_labels(all, order, both);
    for (int i = 0, n[2] = {0}; order[i]; i++)
        if (order[i] != '-')
            assert_string_equal(both[i], alone[order[i] - 'a'][n[order[i] - 'a']++]);
}

/* An answer whose row is there: with a charge it is lost, without one it never was. */
TEST(settles_what_a_crash_left) {
    service v = {0};
    store *s;
    start(&v, letters(-1, NULL, ""), "", false);
    stop(&v);
    stored charged = {.id = "cmpl-1", .dataset = "letters", .key = "charged", .amount = 5};
    stored free_row = {.id = "cmpl-12", .dataset = "letters", .key = "free", .amount = 5};
    assert_ok(store_open(path_in(v.dir, "ledger.answers"), &s, ERR));
    assert_ok(store_begin(s, &charged, -1, ERR));
    assert_ok(store_begin(s, &free_row, -1, ERR));
    store_close(s);
    dpi_ledger *ledger;
    dpi_charge_request wanted;
    dpi_cost cost;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .01, 0, ERR));
    dpi_charge_request_init(&wanted);
    wanted.cost = &cost, wanted.method = "invisibleink", wanted.note = "answer cmpl-1 over HTTP";
    assert_ok(dpi_ledger_open(v.ledger, NULL, &ledger, ERR));
    assert_ok(dpi_ledger_reserve(ledger, "letters", &wanted, NULL, ERR));
    dpi_ledger_close(ledger);

    datasets d;
    stored found;
    assert_ok(dataset_parse(v.spec, &v.set, ERR));
    assert_ok(datasets_open(&v.set, 1, v.ledger, &d, ERR));
    assert_ok(store_find(d.store, "", "charged", &found, ERR));
    assert_true(found.state == STORED_LOST && found.charge == 1);
    assert_ok(store_find(d.store, "", "free", &found, ERR));
    assert_int_equal(found.state, STORED_NONE);
    int64_t spent;
    assert_ok(store_spent(d.store, "", "letters", &spent, ERR));
    assert_int_equal(spent, charged.amount); /* what is lost was paid for */
    datasets_close(&d);
    remove_dir(v.dir);
}

SETUP { open_service_model(); }
TEARDOWN { close_service_model(); }
TEARDOWN_EACH { free_owned(); }
