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

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dpi_status status_ = (call);                                                         \
        if (status_ != DPI_STATUS_OK)                                                              \
            return status_;                                                                        \
    } while (0)

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
    dpi_generation *generation;
    int32_t *tokens[REFERENCES]; /* of its private prompts; NULL: a null record */
    size_t n_tokens[REFERENCES];
    char text[16 * TOKENS * 4];
    size_t n_text;
} question;

static void question_free(question *q) {
    if (!q)
        return;
    dpi_generation_free(q->generation);
    dpi_sampler_free(q->sampler);
    dpi_prompts_free(q->prompts);
    for (int i = 0; i < REFERENCES; i++)
        dpi_private_free(q->tokens[i]);
    free(q);
}

/* On the disk when it returns OK. */
static dpi_status charge(service *s, dpi_error *err) {
    dpi_sampler_plan plan;
    dpi_cost cost;
    dpi_charge_request request;
    dpi_sampler_plan_init(&plan), dpi_cost_init(&cost), dpi_charge_request_init(&request);
    TRY(dpi_sampler_plan_make(&s->method, &plan, err));
    TRY(dpi_method_cost(&s->method, &plan, &cost, err));
    request.cost = &cost, request.method = "invisibleink", request.note = "an answer";
    return dpi_ledger_reserve(s->ledger, s->dataset, &request, NULL, err);
}

/* A record by its place; one that is null stays null where it is. */
static dpi_status read_record(service *s, question *q, size_t i, dpi_error *err) {
    char *text = NULL;
    size_t n_bytes = 0;
    if (i < dpi_records_count(s->records))
        TRY(dpi_records_read(s->records, i, &text, &n_bytes, err));
    const dpi_status status =
        text ? dpi_prompts_encode(q->prompts, text, n_bytes, &q->tokens[i], &q->n_tokens[i], err)
             : DPI_STATUS_OK;
    dpi_private_free(text);
    return status;
}

/* All that can fail without a record comes before the charge, and the charge before a record. */
static dpi_status question_begin(service *s, question *q, const char *line, int place,
                                 dpi_error *err) {
    dpi_prompt_options prompts;
    dpi_prompts_info info;
    dpi_generation_options o;
    dpi_prompt_options_init(&prompts), dpi_prompts_info_init(&info);
    dpi_generation_options_init(&o);
    prompts.query = (dpi_bytes){line, strlen(line)};
    TRY(dpi_prompts_create(s->model, &prompts, CONTEXT - TOKENS, &q->prompts, err));
    TRY(dpi_prompts_info_get(q->prompts, &info, err));
    TRY(dpi_sampler_create(&s->method, &q->sampler, err));
    TRY(charge(s, err));
    for (size_t i = 0; i < REFERENCES; i++)
        TRY(read_record(s, q, i, err));
    o.session = s->session, o.sampler = q->sampler, o.text = 1;
    o.public_tokens = dpi_prompts_public(q->prompts), o.n_public = (size_t)info.n_public;
    o.reference_tokens = (const int32_t *const *)q->tokens, o.n_reference_tokens = q->n_tokens;
    o.n_ref = REFERENCES, o.n_prefix = (size_t)info.n_prefix;
    o.first_seq = place * (REFERENCES + 1);
    return dpi_generation_create(&o, &q->generation, err);
}

/* The next question that the budget allows; NULL: there are no more. */
static question *next_question(service *s, int place) {
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, stdin)) {
        question *q = calloc(1, sizeof *q);
        dpi_error err = {.message = "out of memory"};
        line[strcspn(line, "\n")] = '\0';
        s->n_questions++;
        if (q && question_begin(s, q, line, place, &err) == DPI_STATUS_OK) {
            q->number = s->n_questions;
            return q;
        }
        printf("%d refused: %s\n", s->n_questions, err.message);
        question_free(q);
    }
    return NULL;
}

static void keep_text(question *q, const dpi_generation_event *e) {
    if (e->n_bytes <= sizeof q->text - q->n_text) {
        memcpy(q->text + q->n_text, e->text, e->n_bytes);
        q->n_text += e->n_bytes;
    }
}

/* One step of all questions that are there. Those that are over are told, and leave their place. */
static dpi_status answer(question *places[PARALLEL], dpi_error *err) {
    dpi_generation *live[PARALLEL];
    dpi_generation_event events[PARALLEL];
    int at[PARALLEL], n = 0;
    for (int i = 0; i < PARALLEL; i++)
        if (places[i])
            live[n] = places[i]->generation, at[n++] = i;
    if (n > 0)
        TRY(dpi_generation_advance(live, n, events, err));
    for (int i = 0; i < n; i++) {
        question *q = places[at[i]];
        keep_text(q, &events[i]);
        if (events[i].type != DPI_EVENT_END)
            continue;
        printf("%d answer: %.*s\n", q->number, (int)q->n_text, q->text);
        question_free(q);
        places[at[i]] = NULL;
    }
    return DPI_STATUS_OK;
}

static dpi_status serve(service *s, question *places[PARALLEL], dpi_error *err) {
    for (int n_live = 1; n_live > 0;) {
        n_live = 0;
        for (int i = 0; i < PARALLEL; i++) {
            if (!places[i])
                places[i] = next_question(s, i);
            n_live += places[i] != NULL;
        }
        TRY(answer(places, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status open_all(service *s, char **argv, dpi_error *err) {
    dpi_model_info info;
    dpi_session_options session;
    dpi_model_info_init(&info), dpi_session_options_init(&session);
    session.n_seq = PARALLEL * (REFERENCES + 1), session.n_ctx = CONTEXT;
    TRY(dpi_model_open(argv[1], NULL, &s->model, err));
    TRY(dpi_model_info_get(s->model, &info, err));
    TRY(dpi_records_open(argv[2], NULL, &s->records, err));
    TRY(dpi_ledger_open(argv[3], NULL, &s->ledger, err));
    TRY(dpi_session_create(s->model, &session, &s->session, err));
    dpi_sampler_options_init(&s->method);
    s->method.n_vocab = info.n_vocab, s->method.n_ref = REFERENCES, s->method.n_tokens = TOKENS;
    s->method.epsilon = atof(argv[5]), s->method.delta = 1e-6;
    s->dataset = argv[4];
    return DPI_STATUS_OK;
}

int main(int argc, char **argv) {
    service s = {0};
    question *places[PARALLEL] = {NULL};
    dpi_error err = {.message = "usage: rag_server MODEL RECORDS LEDGER DATASET EPSILON"};
    const bool ok = argc == 6 && open_all(&s, argv, &err) == DPI_STATUS_OK &&
                    serve(&s, places, &err) == DPI_STATUS_OK;
    if (!ok)
        fprintf(stderr, "rag_server: %s\n", err.message);
    for (int i = 0; i < PARALLEL; i++)
        question_free(places[i]);
    dpi_session_free(s.session);
    dpi_ledger_close(s.ledger);
    dpi_records_close(s.records);
    dpi_model_close(s.model);
    return !ok;
}
