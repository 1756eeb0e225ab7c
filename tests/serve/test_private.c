/* test_private.c - private answers of a real server in this process, with random bits that are
 * fixed. Everything that a client can see is compared on neighbouring datasets, byte for byte; and
 * answers that are drawn side by side with those that are drawn alone. */
#include <jansson.h>
#include <pthread.h>

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

/* How many tokens an event has is the pace, which the operator allows clients to see. The rest of a
 * stream is one text, and why it ended. */
static void join_stream(char *reply) {
    char *body = (char *)(uintptr_t)body_of(reply), *to = body;
    if (!strstr(reply, "text/event-stream"))
        return;
    char *last = strstr(body, "\"delta\":{},");
    assert_non_null(last);
    for (char *at = body; (at = strstr(at, "\"content\":\"")) != NULL && at < last;) {
        at += 11;
        const size_t n = strcspn(at, "\"");
        memmove(to, at, n);
        to += n;
        at += n;
    }
    memmove(to, last, strlen(last) + 1);
}

/* ---- Neighbouring datasets ------------------------------------------------------------------- */

/* Letters of which one, if any, is another line. */
static char *letters(int changed, const char *line, const char *fields) {
    char *text = calloc(1, 1 << 20);
    size_t n = 0;
    for (int i = 0; i < N_RECORDS; i++)
        n += (size_t)(i == changed
                          ? sprintf(text + n, "%s\n", line)
                          : sprintf(text + n, "{\"text\": \"Ticket %d: the printer of room %d does "
                                              "not print.\"%s}\n", 7919 * i, 31 * i, fields));
    return text;
}

typedef struct step {
    const char *method, *path, *head, *body;
} step;

/* What clients do: each path, answers whole and streamed, refusals, a key that is there again. */
static const step steps[] = {
    {"GET", "/health", "", ""},
    {"GET", "/v1/models", "", ""},
    {"POST", "/v1/privacy/plan", "",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.0002}, \"max_tokens\": 12, " QUESTION
     "}"},
    {"POST", CHAT, "Idempotency-Key: a\r\n",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.0002}, \"max_tokens\": 12, " QUESTION
     "}"},
    {"POST", CHAT, "Idempotency-Key: a\r\n",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.0002}, \"max_tokens\": 12, " QUESTION
     "}"},
    {"POST", CHAT, "",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.0002, \"batch\": 5, \"tokens\": 9}, "
     "\"stream\": true, \"stream_options\": {\"include_usage\": true}, " QUESTION "}"},
    {"POST", "/v1/completions", "",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.0002, \"batch\": 1}, \"prompt\": "
     "\"Write a ticket.\", \"max_tokens\": 8}"},
    {"POST", CHAT, "",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 90}, \"max_tokens\": 12, " QUESTION
     "}"},
    {"POST", CHAT, "",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 1}, \"max_tokens\": 600, " QUESTION
     "}"},
    {"POST", CHAT, "Idempotency-Key: a\r\n",
     "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.02}, " QUESTION "}"},
    {"GET", "/v1/privacy/budget", "", ""},
    {"GET", "/v1/privacy/budget/letters", "", ""},
    {"GET", "/metrics", "", ""},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

/* All replies, and the reports of all answers. */
static char *see_all(const char *lines, const char *more) {
    static const int codes[N_STEPS] = {200, 200, 200, 200, 200, 200, 200, 403, 400, 422, 200, 200,
                                       200};
    service v = {0};
    char *all = calloc(1, N_STEPS * REPLY_MAX), path[160];
    start(&v, lines, more, true);
    for (int i = 0; i < N_STEPS; i++) {
        char *reply = send_request(&v, steps[i].method, steps[i].path, steps[i].head,
                                   steps[i].body);
        if (code_of(reply) != codes[i])
            fail_msg("step %d: %s", i, reply);
        const char *link = strstr(reply, "\"report\":\"");
        char *report = NULL;
        if (link && sscanf(link, "\"report\":\"%150[^\"]", path) == 1)
            report = send_request(&v, "GET", path, "", "");
        join_stream(reply);
        strcat(all, reply);
        if (report) {
            assert_int_equal(code_of(report), 200);
            strcat(all, report);
        }
        free(report);
        free(reply);
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
        fail_msg("%s: a client sees it: ...%.*s... and ...%.*s...", what, 200,
                 a + (i > 60 ? i - 60 : 0), 200, b + (i > 60 ? i - 60 : 0));
}

/* The budget of a token is so small that the same bits draw the same tokens: what is left to differ
 * is everything else. At epsilon 0.01 four private tokens of a pace did change on one instruction
 * set: bits that are the same fall near the border of some candidate where there are many. */
static void tells_nothing_of_a_record(void **state) {
    (void)state;
    static char longer[40000];
    memset(longer, 'x', sizeof longer - 1);
    memcpy(longer, "{\"text\": \"", 10);
    memcpy(longer + sizeof longer - 4, "\"}", 3);
    const char *const others[] = {"{\"text\": \"\"}", "no JSON at all", longer,
                                  "{\"text\": \"My name is Anna.\"}", "{\"text\": 5}", "{}"};
    char *usual = letters(-1, NULL, ""), *all = see_all(usual, "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int place = 0; place < N_RECORDS; place += 7) {
            char *lines = letters(place, others[i], ""), *seen = see_all(lines, "");
            compare(others[i], all, seen);
            free(seen);
            free(lines);
        }
    free(usual);
    free(all);
}

/* Units: how many records one has, and which of them are null. */
static void tells_nothing_of_a_unit(void **state) {
    (void)state;
    static const char *const units[] = {
        "{\"text\": \"My name is Anna.\", \"who\": \"p3\"}\n",
        "{\"text\": \"\", \"who\": \"p3\"}\n",
        "{\"text\": \"x\", \"who\": \"p3\"}\n{\"text\": \"y\", \"who\": \"p3\"}\n"
        "{\"text\": \"z\", \"who\": \"p3\"}\n",
    };
    char *first = NULL;
    for (int i = 0; i < 3; i++) {
        char *text = calloc(1, 1 << 16);
        for (int k = 0; k < 6; k++)
            if (k == 3)
                strcat(text, units[i]);
            else
                sprintf(text + strlen(text), "{\"text\": \"The printer.\", \"who\": \"p%d\"}\n", k);
        char *seen = see_all(text, ",unit=who,scope=unit,pace=top,pace-theta=.5,pace-tokens=4");
        if (first)
            compare(units[i], first, seen);
        free(i > 0 ? first : NULL);
        first = seen;
        free(text);
    }
    free(first);
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
static void has_the_bits_that_it_has_alone(void **state) {
    (void)state;
    enum { N = 7 };
    sender senders[N];
    pthread_t threads[N];
    service v = {0};
    char *lines = letters(-1, NULL, "");
    start(&v, lines, ",batch=16", false);
    char *alone[N], *beside[N];
    for (int i = 0; i < N; i++) {
        senders[i].v = &v;
        snprintf(senders[i].body, sizeof senders[i].body,
                 "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 0.1%d}, \"max_tokens\": "
                 "%d, " QUESTION "}", i, 5 + 3 * i);
        if (i == 4) /* one without records among them */
            snprintf(senders[i].body, sizeof senders[i].body,
                     "{\"seed\": 3, \"max_tokens\": 20, " QUESTION "}");
        send_one(&senders[i]);
        alone[i] = member(senders[i].reply, "choices", "message");
        free(senders[i].reply);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_one, &senders[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        beside[i] = member(senders[i].reply, "choices", "message");
        free(senders[i].reply);
    }
    free(lines);
    forget(&v); /* before a check fails: nothing of this frame may be in use then */
    for (int i = 0; i < N; i++) {
        assert_string_equal(beside[i], alone[i]);
        free(beside[i]);
        free(alone[i]);
    }
}

/* What the answers to several questions say, one after the other, batch after batch; all [n]. */
static void answer_all(const service *v, char **all, int n) {
    static const char *const kinds[] = {"problem do people have", "room is it", "problem is rare"};
    for (int i = 0; i < n; i++) {
        sender one = {.v = v};
        snprintf(one.body, sizeof one.body,
                 "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 900}, \"max_tokens\": "
                 "%d, \"messages\": [%s{\"role\": \"user\", \"content\": \"Which %s?\"}]}", 5 + i,
                 i % 4 == 3 ? "{\"role\": \"system\", \"content\": \"Be short.\"}, " : "",
                 kinds[i / 3 % 3]);
        send_one(&one);
        all[i] = member(one.reply, "choices", "message");
        free(one.reply);
    }
}

/* The same texts whether caches of records are kept or not. With this budget texts follow the
 * records closely. */
static void has_the_bits_that_it_has_without_caches(void **state) {
    (void)state;
    enum { N = 15 };
    char *lines = letters(5, "{\"text\": \"\"}", ", \"who\": \"x\""), *texts[2][N];
    for (int i = 0; i < 2; i++) {
        service v = {.keeps_nothing = i == 1};
        start(&v, lines, ",batch=4,epsilon=100000", false);
        answer_all(&v, texts[i], N);
        forget(&v);
    }
    int n_others = 0;
    for (int i = 0; i < N; i++) {
        assert_string_equal(texts[0][i], texts[1][i]);
        n_others += strcmp(texts[0][i], texts[0][i % 3]) != 0;
        free(texts[1][i]);
    }
    assert_true(n_others > N / 2); /* questions and batches matter */
    for (int i = 0; i < N; free(texts[0][i++])) {
    }
    free(lines);
}

/* ---- Keys and budgets ------------------------------------------------------------------------ */

static const char body[] = "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 3}, "
                           "\"max_tokens\": 10, " QUESTION "}";

/* Whoever reads the file when a token is drawn finds its charge, and whoever reads the metrics does
 * not see it come. */
static void charges_before_it_draws(void **state) {
    (void)state;
    service v = {.n_charges = 1};
    char *lines = letters(-1, NULL, "");
    start(&v, lines, "", false);
    for (int i = 1; i <= 3; i++) {
        v.n_charges = i;
        char *reply = send_request(&v, "POST", CHAT, "", body);
        assert_int_equal(code_of(reply), 200);
        char *n_tokens = member(reply, "usage", "completion_tokens");
        v.n_tokens += atoi(n_tokens);
        free(n_tokens);
        free(reply);
    }
    assert_true(v.n_draws > 2);
    assert_int_equal(v.n_early, 0);
    assert_int_equal(v.n_told, 0);
    assert_int_equal(count_tokens(&v), v.n_tokens);
    free(lines);
    forget(&v);
}

/* A key that is there again gives what was released, though bits and records are others by now. */
static void releases_an_answer_once(void **state) {
    (void)state;
    service v = {0};
    char *lines = letters(-1, NULL, "");
    start(&v, lines, "", true);
    char *first = send_request(&v, "POST", CHAT, "Idempotency-Key: k 1\r\n", body);
    assert_int_equal(code_of(first), 200);
    assert_int_equal(count_charges(&v), 1);
    v.byte = 0xf1;
    char *again = send_request(&v, "POST", CHAT, "Idempotency-Key: k 1\r\n", body);
    assert_string_equal(body_of(first), body_of(again));
    free(again);
    char *other = send_request(&v, "POST", CHAT, "Idempotency-Key: k 2\r\n", body);
    char *a = member(first, "choices", "message"), *b = member(other, "choices", "message");
    assert_string_not_equal(a, b); /* these bits draw other tokens */
    assert_int_equal(count_charges(&v), 2);
    char *reused = send_request(&v, "POST", "/v1/completions", "Idempotency-Key: k 1\r\n",
                                "{\"prompt\": \"x\", \"dataset\": \"letters\", \"privacy\": "
                                "{\"epsilon\": 1}}");
    assert_int_equal(code_of(reused), 422);
    assert_int_equal(count_charges(&v), 2);
    free(a);
    free(b);
    free(reused);
    free(other);
    free(first);
    free(lines);
    forget(&v);
}

/* Alice may spend what one answer costs and a little, and Bob what the dataset has. */
static void holds_shares(void **state) {
    (void)state;
    static const char tokens[] =
        "alice ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad letters=0.2\n"
        "bob e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
    service v = {0};
    dpi_error err;
    char *lines = letters(-1, NULL, "");
    assert_ok(principals_parse("tokens", tokens, strlen(tokens), &v.p, &err), &err);
    start(&v, lines, "", false);
    static const struct {
        const char *head;
        int code;
    } all[] = {
        {"Authorization: Bearer abc\r\nIdempotency-Key: k\r\n", 200},
        {"Authorization: Bearer abc\r\n", 403},
        {"Authorization: Bearer \r\nIdempotency-Key: k\r\n", 200}, /* a key of his own */
        {"Authorization: Bearer abc\r\n", 403},
        {"Authorization: Bearer abc\r\nIdempotency-Key: k\r\n", 200}, /* free */
        {"Authorization: Bearer \r\n", 200},
        {"Authorization: Bearer abd\r\n", 401},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *reply = send_request(&v, "POST", CHAT, all[i].head, body);
        if (code_of(reply) != all[i].code)
            fail_msg("%zu: %s", i, reply);
        if (all[i].code == 403) {
            char *type = member(reply, "error", "type"), *left = member(reply, "error",
                                                                        "remaining");
            assert_string_equal(type, "\"privacy_budget_exceeded\"");
            assert_true(atof(left) > 0 && atof(left) < .2 * 5);
            free(type);
            free(left);
        }
        free(reply);
    }
    assert_int_equal(count_charges(&v), 3);
    free(lines);
    forget(&v);
    principals_free(v.p);
}

/* The fourth answer of three units that take turns: the budget of each allows one. */
static char *fourth_of_units(const char *first_unit, char **first) {
    service v = {0};
    char lines[512], *fourth = NULL;
    snprintf(lines, sizeof lines,
             "%s\n{\"text\": \"The lamp is dark.\", \"who\": \"p1\"}\n"
             "{\"text\": \"Ticket 7: no water in room 31.\", \"who\": \"p2\"}\n", first_unit);
    start(&v, lines, ",unit=who,scope=unit,batch=1,epsilon=500", false);
    for (int i = 0; i < 4; i++) {
        char *reply = send_request(&v, "POST", CHAT, "",
                                   "{\"dataset\": \"letters\", \"privacy\": {\"epsilon\": 800}, "
                                   "\"max_tokens\": 24, " QUESTION "}");
        if (code_of(reply) != 200)
            fail_msg("%d: %s", i, reply);
        char *text = member(reply, "choices", "message");
        if (i == 0)
            *first = text;
        else if (i == 3)
            fourth = text;
        else
            free(text);
        free(reply);
    }
    assert_int_equal(count_charges(&v), 4);
    forget(&v);
    return fourth;
}

/* A unit that cannot pay is null, and nothing else tells it. */
static void has_a_sum_for_each_unit(void **state) {
    (void)state;
    char *first, *first_null;
    char *paid = fourth_of_units("{\"text\": \"Ticket 5: the printer is red.\", \"who\": "
                                 "\"p0\"}", &first);
    char *null = fourth_of_units("{\"text\": \"\", \"who\": \"p0\"}", &first_null);
    assert_string_not_equal(first, first_null); /* its record matters */
    assert_string_equal(paid, null);
    assert_string_equal(null, first_null);
    free(first);
    free(first_null);
    free(paid);
    free(null);
}

/* An answer whose row is there: with a charge it is lost, without one it never was. */
static void settles_what_a_crash_left(void **state) {
    (void)state;
    service v = {0};
    store *s;
    dpi_error err;
    char *lines = letters(-1, NULL, ""), path[400];
    start(&v, lines, "", false);
    stop(&v);
    snprintf(path, sizeof path, "%s.answers", v.ledger);
    stored charged = {.id = "cmpl-1", .dataset = "letters", .key = "charged", .amount = 5};
    stored free_row = {.id = "cmpl-12", .dataset = "letters", .key = "free", .amount = 5};
    assert_ok(store_open(path, &s, &err), &err);
    assert_ok(store_begin(s, &charged, -1, &err), &err);
    assert_ok(store_begin(s, &free_row, -1, &err), &err);
    store_close(s);
    dpi_ledger *ledger;
    dpi_charge_request wanted;
    dpi_cost cost;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .01, 0, &err), &err);
    dpi_charge_request_init(&wanted);
    wanted.cost = &cost, wanted.method = "invisibleink", wanted.note = "answer cmpl-1 over HTTP";
    assert_ok(dpi_ledger_open(v.ledger, NULL, &ledger, &err), &err);
    assert_ok(dpi_ledger_reserve(ledger, "letters", &wanted, NULL, &err), &err);
    dpi_ledger_close(ledger);

    datasets d;
    assert_ok(datasets_open(v.specs, 1, v.ledger, &d, &err), &err);
    stored found;
    assert_ok(store_find(d.store, "", "charged", &found, &err), &err);
    assert_int_equal(found.state, STORED_LOST);
    assert_int_equal(found.charge, 1);
    assert_ok(store_find(d.store, "", "free", &found, &err), &err);
    assert_int_equal(found.state, STORED_NONE);
    datasets_close(&d);
    free(lines);
    remove_dir(v.dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_nothing_of_a_record),
        cmocka_unit_test(tells_nothing_of_a_unit),
        cmocka_unit_test(has_the_bits_that_it_has_alone),
        cmocka_unit_test(has_the_bits_that_it_has_without_caches),
        cmocka_unit_test(charges_before_it_draws),
        cmocka_unit_test(releases_an_answer_once),
        cmocka_unit_test(holds_shares),
        cmocka_unit_test(has_a_sum_for_each_unit),
        cmocka_unit_test(settles_what_a_crash_left),
    };
    return cmocka_run_group_tests(tests, open_service_model, close_service_model);
}
