/* rag_server.c - questions about private records, answered side by side within a budget:
 *     rag_server MODEL RECORDS LEDGER DATASET EPSILON
 * A question is a line of standard input, and is public. Each is charged EPSILON to the dataset of
 * the ledger ('dpinfer ledger init') before a record is read for it, and is refused when the budget
 * does not allow it. Answers are drawn in shared passes, and come whole, in the order in which they
 * are ready: the pace of tokens depends on records. A server over sockets does the same. */
#include <dpinfer.h>
#include <dpinfer/ledger.h>
#include <dpinfer/records.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) ((call) == DPI_STATUS_OK)

enum { PARALLEL = 4, REFERENCES = 8, TOKENS = 64, CONTEXT = 512, LINE_BYTES = 4096 };

typedef struct service {
    dpi_model *model;
    dpi_records *records;
    dpi_ledger *ledger;
    const char *dataset;
    dpi_session *session;
    dpi_sampler_options method; /* of one answer */
    int n_questions;
} service;

typedef struct question {
    int number;
    dpi_prompts *prompts;
    dpi_sampler *sampler;
    dpi_generation *generation;  /* NULL: the place is free */
    int32_t *tokens[REFERENCES]; /* of its private prompts; NULL: a null record */
    size_t n_tokens[REFERENCES];
    char text[64 * TOKENS];
    size_t n_text;
} question;

static void end(question *q) {
    dpi_generation_free(q->generation);
    dpi_sampler_free(q->sampler);
    dpi_prompts_free(q->prompts);
    for (int i = 0; i < REFERENCES; i++)
        dpi_private_free(q->tokens[i]);
    *q = (question){0};
}

/* On the disk when it returns true. */
static bool charge(service *s, dpi_error *err) {
    dpi_sampler_plan plan;
    dpi_cost cost;
    dpi_charge_request request;
    dpi_sampler_plan_init(&plan), dpi_cost_init(&cost), dpi_charge_request_init(&request);
    request.cost = &cost, request.method = "invisibleink", request.note = "an answer";
    return OK(dpi_sampler_plan_make(&s->method, &plan, err)) &&
           OK(dpi_method_cost(&s->method, &plan, &cost, err)) &&
           OK(dpi_ledger_reserve(s->ledger, s->dataset, &request, NULL, err));
}

/* A null record stays null in its place. */
static bool read_record(service *s, question *q, size_t i, dpi_error *err) {
    char *text = NULL;
    size_t n_bytes = 0;
    if (i >= dpi_records_count(s->records))
        return true;
    const bool ok = OK(dpi_records_read(s->records, i, &text, &n_bytes, err)) &&
                    OK(dpi_prompts_encode(q->prompts, text, n_bytes, &q->tokens[i],
                                          &q->n_tokens[i], err));
    dpi_private_free(text);
    return ok;
}

/* All that can fail without a record comes before the charge, and the charge before a record. */
static bool begin(service *s, question *q, const char *line, int place, dpi_error *err) {
    dpi_prompt_options prompts;
    dpi_prompts_info info;
    dpi_generation_options o;
    dpi_prompt_options_init(&prompts), dpi_prompts_info_init(&info);
    dpi_generation_options_init(&o);
    prompts.query = (dpi_bytes){line, strlen(line)};
    bool ok = OK(dpi_prompts_create(s->model, &prompts, CONTEXT - TOKENS, &q->prompts, err)) &&
              OK(dpi_prompts_info_get(q->prompts, &info, err)) &&
              OK(dpi_sampler_create(&s->method, &q->sampler, err)) && charge(s, err);
    for (size_t i = 0; ok && i < REFERENCES; i++)
        ok = read_record(s, q, i, err);
    if (!ok)
        return false;
    o.session = s->session, o.sampler = q->sampler, o.text = 1;
    o.public_tokens = dpi_prompts_public(q->prompts), o.n_public = (size_t)info.n_public;
    o.reference_tokens = (const int32_t *const *)q->tokens, o.n_reference_tokens = q->n_tokens;
    o.n_ref = REFERENCES, o.n_prefix = (size_t)info.n_prefix;
    o.first_seq = place * (REFERENCES + 1);
    return OK(dpi_generation_create(&o, &q->generation, err));
}

/* The next question that the budget allows, into a free place; none: it stays free. */
static void fill(service *s, question *q, int place) {
    char line[LINE_BYTES];
    dpi_error err;
    while (!q->generation && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        q->number = ++s->n_questions;
        if (!begin(s, q, line, place, &err)) {
            printf("%d refused: %s\n", q->number, err.message);
            end(q);
        }
    }
}

static void tell(question *q, const dpi_generation_event *e) {
    if (e->n_bytes <= sizeof q->text - q->n_text) {
        memcpy(q->text + q->n_text, e->text, e->n_bytes);
        q->n_text += e->n_bytes;
    }
    if (e->type == DPI_EVENT_END) {
        printf("%d answer: %.*s\n", q->number, (int)q->n_text, q->text);
        end(q);
    }
}

/* Each round is one step of all questions that are there; one that is over leaves its place. */
static bool serve(service *s, question *q, dpi_error *err) {
    for (int n = 1; n > 0;) {
        dpi_generation *live[PARALLEL];
        dpi_generation_event events[PARALLEL];
        int at[PARALLEL];
        n = 0;
        for (int i = 0; i < PARALLEL; i++) {
            fill(s, &q[i], i);
            if (q[i].generation)
                live[n] = q[i].generation, at[n++] = i;
        }
        if (n > 0 && !OK(dpi_generation_advance(live, n, events, err)))
            return false;
        for (int i = 0; i < n; i++)
            tell(&q[at[i]], &events[i]);
    }
    return true;
}

static bool open_all(service *s, char **argv, dpi_error *err) {
    dpi_model_info info;
    dpi_session_options session;
    dpi_model_info_init(&info), dpi_session_options_init(&session);
    dpi_sampler_options_init(&s->method);
    session.n_seq = PARALLEL * (REFERENCES + 1), session.n_ctx = CONTEXT;
    s->dataset = argv[4];
    s->method.n_ref = REFERENCES, s->method.n_tokens = TOKENS;
    s->method.epsilon = atof(argv[5]), s->method.delta = 1e-6;
    const bool ok = OK(dpi_model_open(argv[1], NULL, &s->model, err)) &&
                    OK(dpi_model_info_get(s->model, &info, err)) &&
                    OK(dpi_records_open(argv[2], NULL, &s->records, err)) &&
                    OK(dpi_ledger_open(argv[3], NULL, &s->ledger, err)) &&
                    OK(dpi_session_create(s->model, &session, &s->session, err));
    s->method.n_vocab = info.n_vocab;
    return ok;
}

int main(int argc, char **argv) {
    service s = {0};
    question questions[PARALLEL] = {0};
    dpi_error err = {.message = "usage: rag_server MODEL RECORDS LEDGER DATASET EPSILON"};
    const bool ok = argc == 6 && open_all(&s, argv, &err) && serve(&s, questions, &err);
    if (!ok)
        fprintf(stderr, "rag_server: %s\n", err.message);
    for (int i = 0; i < PARALLEL; i++)
        end(&questions[i]);
    dpi_session_free(s.session);
    dpi_ledger_close(s.ledger);
    dpi_records_close(s.records);
    dpi_model_close(s.model);
    return !ok;
}
