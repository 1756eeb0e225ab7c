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

static dpi_model *model;
static dpi_records *records;
static dpi_ledger *ledger;
static dpi_session *session;
static dpi_sampler_options method; /* of one answer */
static struct question {
    int number;
    dpi_sampler *sampler;
    dpi_prompts *prompts;
    int32_t *tokens[REFERENCES]; /* of its private prompts; NULL: a null record, in its place */
    size_t n_tokens[REFERENCES];
} questions[PARALLEL];
static dpi_generation *generations[PARALLEL]; /* NULL: the place is free */

static void end(int place) {
    dpi_generation_free(generations[place]);
    dpi_sampler_free(questions[place].sampler);
    dpi_prompts_free(questions[place].prompts);
    for (int i = 0; i < REFERENCES; i++)
        dpi_private_free(questions[place].tokens[i]);
    generations[place] = NULL, questions[place] = (struct question){0};
}

/* All that can fail without a record comes before the charge, and the charge before a record. */
static bool begin(int place, const char *dataset, const char *line, dpi_error *err) {
    struct question *q = &questions[place];
    dpi_prompt_options p;
    dpi_prompts_info info;
    dpi_generation_options o;
    dpi_prompt_options_init(&p), dpi_prompts_info_init(&info), dpi_generation_options_init(&o);
    p.query = (dpi_bytes){line, strlen(line)};
    bool ok = OK(dpi_prompts_create(model, &p, CONTEXT - TOKENS, &q->prompts, err)) &&
              OK(dpi_prompts_info_get(q->prompts, &info, err)) &&
              OK(dpi_sampler_create(&method, &q->sampler, err)) &&
              OK(dpi_ledger_reserve_text(ledger, dataset, q->sampler, "an answer", NULL, err));
    for (size_t i = 0; ok && i < REFERENCES; i++)
        ok = OK(dpi_records_prompt(records, i, q->prompts, &q->tokens[i], &q->n_tokens[i], err));
    o.session = session, o.sampler = q->sampler, o.text = DPI_TEXT_WHOLE;
    o.public_tokens = dpi_prompts_public(q->prompts), o.n_public = (size_t)info.n_public;
    o.reference_tokens = (const int32_t *const *)q->tokens, o.n_reference_tokens = q->n_tokens;
    o.n_ref = REFERENCES, o.n_prefix = (size_t)info.n_prefix;
    o.first_seq = place * (REFERENCES + 1);
    return ok && OK(dpi_generation_create(&o, &generations[place], err));
}

/* The next question that the budget allows, into a free place; none: it stays free. */
static void fill(int place, const char *dataset) {
    static int n_questions;
    char line[LINE_BYTES];
    dpi_error err;
    while (!generations[place] && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        questions[place].number = ++n_questions;
        if (!begin(place, dataset, line, &err))
            printf("%d refused: %s\n", n_questions, err.message), end(place);
    }
}

/* One step of all questions that are there; one that is over leaves its place. 0: none is. */
static int step(const char *dataset, dpi_error *err) {
    dpi_generation_event e[PARALLEL];
    int n = 0;
    for (int i = 0; i < PARALLEL; i++) {
        fill(i, dataset);
        n += generations[i] != NULL;
    }
    if (!OK(dpi_generation_advance(generations, PARALLEL, e, err)))
        return -1;
    for (int i = 0; i < PARALLEL; i++)
        if (e[i].type == DPI_EVENT_END) {
            printf("%d answer: %.*s\n", questions[i].number, (int)e[i].n_bytes, e[i].text);
            end(i);
        }
    return n;
}

static bool open_all(char **argv, dpi_error *err) {
    dpi_session_options o;
    dpi_model_info info;
    dpi_session_options_init(&o), dpi_sampler_options_init(&method), dpi_model_info_init(&info);
    o.n_seq = PARALLEL * (REFERENCES + 1), o.n_ctx = CONTEXT;
    bool ok = OK(dpi_model_open(argv[1], NULL, &model, err)) &&
              OK(dpi_model_info_get(model, &info, err)) &&
              OK(dpi_records_open(argv[2], NULL, &records, err)) &&
              OK(dpi_ledger_open(argv[3], NULL, &ledger, err)) &&
              OK(dpi_session_create(model, &o, &session, err));
    method.n_ref = REFERENCES, method.n_tokens = TOKENS, method.n_vocab = info.n_vocab;
    method.epsilon = atof(argv[5]), method.delta = 1e-6;
    return ok;
}

int main(int argc, char **argv) {
    dpi_error err = {.message = "usage: rag_server MODEL RECORDS LEDGER DATASET EPSILON"};
    int n = argc == 6 && open_all(argv, &err) ? 1 : -1;
    while (n > 0)
        n = step(argv[4], &err);
    if (n < 0)
        fprintf(stderr, "rag_server: %s\n", err.message);
    for (int i = 0; i < PARALLEL; i++)
        end(i);
    dpi_session_free(session);
    dpi_ledger_close(ledger);
    dpi_records_close(records);
    dpi_model_close(model);
    return n != 0;
}
