/* measure.c - how long a release takes: a few passes of this model on this machine with made-up
 * prompts, scaled to its prompts, sequences and positions. No record is read.
 *
 * The time of a pass has three parts: the prompt that is read, the rows of the step, and the
 * positions that each row looks back at. Each is measured apart. Then the passes of the run are
 * gone through one by one, as release/texts.c does them, and their times are added. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"
#include "pipeline/release/plan.h"

enum {
    FIRST_TOKENS = 16, /* of the prompt that warms up, and tells how long a longer one may be */
    STEPS_MOST = 16,
};
static const double PROMPT_SECONDS = 0.6, STEP_SECONDS = 0.1; /* for each of the measured parts */

/* ---- Measuring ------------------------------------------------------------------------------- */

typedef struct measure {
    const dpi_plan *plan;
    dpi_session *session;
    dpi_sampler *sampler;
    int32_t n_unit;           /* records of a unit, at most M; 1 without units */
    int32_t n_seq, n_all;     /* rows of a step of one text, of all */
    int32_t *seqs, *tokens;   /* [n_all], those with all logits first */
    const float **logits;     /* of the references of one text, as the sampler takes them */
    int32_t *prompt;          /* [n_prompt] */
    int32_t n_prompt, n_held; /* n_held of them are in the first sequence */
    bool partial;             /* references' logits are computed for the candidates alone */
} measure;

int32_t dpi_plan_rows(const dpi_plan *plan, int32_t n_unit) {
    const int32_t most = dpi_sampler_per_unit(&plan->claim.method);
    const int64_t n_units = plan->claim.n_records; /* 0: nobody knows */
    int32_t batch = (plan->options.session.n_seq - 1) / most;
    if (n_units > 0 && n_units < batch)
        batch = (int32_t)n_units;
    return batch * n_unit + 1;
}

static void free_measure(measure *m) {
    dpi_sampler_free(m->sampler);
    dpi_session_free(m->session);
    free(m->seqs);
    free(m->tokens);
    free(m->logits);
    free(m->prompt);
}

static dpi_status make_sampler(measure *m, dpi_error *err) {
    return dpi_sampler_create_planned(&m->plan->claim.method, &m->plan->sampler, &m->sampler, err);
}

/* The tokens of the public prompt, over and over. */
static dpi_status make_prompt(measure *m, int32_t n, dpi_error *err) {
    const dpi_prompts *prompts = dpi_plan_prompts(m->plan, -1);
    const int32_t *from = dpi_prompts_public(prompts);
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    m->prompt = calloc((size_t)n, sizeof *m->prompt);
    if (!m->prompt)
        return dpi_no_memory(err, "the plan");
    for (int32_t i = 0; i < n; i++)
        m->prompt[i] = from[i % info.n_public];
    m->n_prompt = n;
    return DPI_STATUS_OK;
}

static dpi_status make_measure(measure *m, int32_t n_prompt, dpi_error *err) {
    const dpi_plan *plan = m->plan;
    dpi_session_options o = plan->options.session;
    o.cancel = NULL;
    m->n_seq = dpi_plan_rows(plan, m->n_unit);
    m->n_all = o.n_seq = m->n_seq * plan->options.n_parallel;
    m->seqs = calloc((size_t)m->n_all, sizeof *m->seqs);
    m->tokens = calloc((size_t)m->n_all, sizeof *m->tokens);
    m->logits = calloc((size_t)plan->options.session.n_seq, sizeof *m->logits);
    if (!m->seqs || !m->tokens || !m->logits)
        return dpi_no_memory(err, "the plan");
    DPI_TRY(make_prompt(m, n_prompt, err));
    DPI_TRY(make_sampler(m, err));
    DPI_TRY(dpi_session_create(plan->options.model, &o, &m->session, err));
    return dpi_plan_steer(plan, m->session, 0, m->n_all, -1, err);
}

/* Seconds that the next n tokens of the prompt take. */
static dpi_status time_prompt(measure *m, int32_t n, double *seconds, dpi_error *err) {
    const double begin = dpi_seconds();
    DPI_TRY(dpi_session_prefill(m->session, 0, m->prompt + m->n_held, (size_t)n, NULL, err));
    *seconds = dpi_seconds() - begin;
    m->n_held += n;
    return DPI_STATUS_OK;
}

/* All sequences hold the first n tokens of the first one. */
static dpi_status share(measure *m, int32_t n, dpi_error *err) {
    for (int32_t seq = 1; seq < m->n_all; seq++)
        DPI_TRY(dpi_session_fork(m->session, 0, seq, n, err));
    return DPI_STATUS_OK;
}

/* The draw of one text, of which the rows of the references begin at first_row. */
static dpi_status draw(measure *m, int32_t first_seq, int32_t first_row, bool partial,
                       dpi_error *err) {
    const float *public_logits = dpi_session_logits(m->session, first_seq);
    const int32_t *ids = NULL;
    int32_t n_ids = 0, token;
    DPI_TRY(dpi_sampler_begin(m->sampler, err));
    DPI_TRY(dpi_sampler_candidates(m->sampler, public_logits, &ids, &n_ids, err));
    if (partial)
        DPI_TRY(dpi_session_logits_at(m->session, first_row, m->n_seq - 1, ids, n_ids, err));
    m->partial = ids != NULL && m->n_seq > 1;
    const int32_t most = dpi_sampler_per_unit(&m->plan->claim.method);
    for (int32_t i = 0; i < m->n_seq - 1; i++)
        m->logits[i / m->n_unit * most + i % m->n_unit] =
            dpi_session_logits(m->session, first_seq + 1 + i);
    return dpi_sampler_step(m->sampler, public_logits, m->logits, &token, err);
}

/* One step of n_texts texts with their draws. */
static dpi_status step(measure *m, int32_t n_texts, dpi_error *err) {
    const int32_t n_seq = m->n_seq, n_rows = n_texts * n_seq;
    const bool partial = m->partial;
    int32_t n = 0;
    for (int32_t i = 0; i < n_texts; i++)
        m->seqs[n++] = i * n_seq;
    for (int32_t i = 0; i < n_rows; i++)
        if (i % n_seq > 0)
            m->seqs[n++] = i;
    for (int32_t i = 0; i < n_rows; i++)
        m->tokens[i] = m->prompt[0];
    DPI_TRY(dpi_session_step_partial(m->session, n_rows, m->seqs, m->tokens,
                                     partial ? n_texts : n_rows, err));
    for (int32_t i = 0; i < n_texts; i++)
        DPI_TRY(draw(m, i * n_seq, n_texts + i * (n_seq - 1), partial, err));
    return DPI_STATUS_OK;
}

/* Seconds of a step of n_texts texts: the mean, after one to warm up, of as many as the context has
 * room for, which are one at least. */
static dpi_status time_steps(measure *m, int32_t n_texts, int32_t n_most, double *seconds,
                             dpi_error *err) {
    m->partial = false;
    DPI_TRY(step(m, n_texts, err));
    const double begin = dpi_seconds();
    int32_t n = 0;
    do {
        DPI_TRY(step(m, n_texts, err));
        n++;
        *seconds = (dpi_seconds() - begin) / n;
    } while (n < n_most && *seconds * n < STEP_SECONDS);
    return DPI_STATUS_OK;
}

/* ---- What is measured ------------------------------------------------------------------------ */

typedef struct rates {
    double token, pair; /* a prompt: seconds of a token, and more for each one before it */
    double one, all;    /* a step of one text, of all of them */
    double position;    /* and more for each position that a row looks back at */
} rates;

/* A step's positions cost at least what reading them from memory costs. */
static dpi_status least_position(const dpi_plan *plan, double bytes_per_second, double *seconds,
                                 dpi_error *err) {
    dpi_session_options o = plan->options.session;
    uint64_t none, all;
    o.n_seq = 1;
    DPI_TRY(dpi_session_memory(plan->options.model, &o, 0, 0, &none, err));
    DPI_TRY(dpi_session_memory(plan->options.model, &o, o.n_ctx, 0, &all, err));
    *seconds = bytes_per_second > 0 ? (double)(all - none) / o.n_ctx / bytes_per_second : 0;
    return DPI_STATUS_OK;
}

/* Steps of all texts and of one, behind a short prompt. */
static dpi_status measure_steps(measure *m, int32_t n_first, rates *t, double *prompt,
                                dpi_error *err) {
    const int32_t n_parallel = m->plan->options.n_parallel;
    const int32_t left = dpi_session_n_ctx(m->session) - n_first, n_most = left / 2 - 1;
    const int32_t most = n_most < STEPS_MOST ? n_most : STEPS_MOST;
    DPI_TRY(time_prompt(m, n_first, prompt, err));
    dpi_session_reset(m->session, 0);
    m->n_held = 0;
    DPI_TRY(time_prompt(m, n_first, prompt, err));
    DPI_TRY(share(m, n_first, err));
    DPI_TRY(time_steps(m, n_parallel, most, &t->all, err));
    t->one = t->all;
    return n_parallel > 1 ? time_steps(m, 1, most, &t->one, err) : DPI_STATUS_OK;
}

/* A prompt of n_wanted tokens, or the beginning of it that the time allows, in one piece or two;
 * and steps behind it. */
static dpi_status measure_prompt(measure *m, int32_t n_first, int32_t n_wanted, double guess,
                                 rates *t, dpi_error *err) {
    const int32_t left = dpi_session_n_ctx(m->session);
    const double allowed = PROMPT_SECONDS / guess * n_first;
    int32_t n = allowed < n_wanted ? (int32_t)allowed : n_wanted, n_more;
    double first, second = 0, steps;
    n = n > n_first ? n : n_first;
    n_more = n_wanted - n < n ? n_wanted - n : n;
    for (int32_t seq = 0; seq < m->n_all; seq++)
        dpi_session_reset(m->session, seq);
    m->n_held = 0;
    DPI_TRY(time_prompt(m, n, &first, err));
    if (n_more > 0)
        DPI_TRY(time_prompt(m, n_more, &second, err));
    DPI_TRY(share(m, m->n_held, err));
    const int32_t room = left - m->n_held - 1;
    DPI_TRY(time_steps(m, m->plan->options.n_parallel, room < STEPS_MOST ? room : STEPS_MOST,
                       &steps, err));
    const double slope = (steps - t->all) / ((double)m->n_all * (m->n_held - n_first + 1));
    t->position = slope > t->position ? slope : t->position;
    t->pair = n_more > 0 ? 2 * (second / n_more - first / n) / (n + n_more) : t->position;
    t->pair = t->pair > 0 ? t->pair : 0;
    t->token = first / n - t->pair * n / 2;
    t->token = t->token > 0 ? t->token : first / n;
    return DPI_STATUS_OK;
}

static dpi_status measure_rates(measure *m, int32_t n_wanted, double bytes_per_second, rates *t,
                                dpi_error *err) {
    const int32_t n_ctx = m->plan->options.session.n_ctx;
    const int32_t n_first = n_ctx - 4 < FIRST_TOKENS ? n_ctx - 4 : FIRST_TOKENS;
    double guess;
    n_wanted = n_wanted < n_ctx - 4 ? n_wanted : n_ctx - 4;
    n_wanted = n_wanted > n_first ? n_wanted : n_first;
    DPI_TRY(least_position(m->plan, bytes_per_second, &t->position, err));
    DPI_TRY(make_measure(m, n_wanted, err));
    DPI_TRY(measure_steps(m, n_first, t, &guess, err));
    return measure_prompt(m, n_first, n_wanted, guess, t, err);
}

/* ---- The passes of a run --------------------------------------------------------------------- */

typedef struct pass_text {
    bool begun;
    int32_t n_read, n_drawn; /* prompts, tokens */
} pass_text;

typedef struct passes {
    const dpi_plan *plan;
    const rates *t;
    int32_t n_prompt, n_seq; /* tokens of a private prompt; rows of a text */
    int32_t n_tokens;        /* of a text */
    double reading, drawing;
} passes;

/* Tokens from `begin` to `end` of a prompt. */
static double prompt_seconds(const rates *t, double begin, double end) {
    return end > begin ? t->token * (end - begin) + t->pair * (end * end - begin * begin) / 2 : 0;
}

/* The first one is public; references but the first have the beginning of that one. */
static double read_one(const passes *p, int32_t slot) {
    const dpi_prompts_info *info = &p->plan->prompts_info;
    const bool is_public =
        slot == 0 && !(dpi_plan_is_plain(p->plan) && p->plan->claim.record_in_prompt);
    return is_public ? prompt_seconds(p->t, 0, info->n_public)
                     : prompt_seconds(p->t, slot > 1 ? info->n_prefix : 0, p->n_prompt);
}

static double step_seconds(const passes *p, int32_t n_texts, double n_tokens) {
    const dpi_release_options *o = &p->plan->options;
    const double more = o->n_parallel > 1 ? (p->t->all - p->t->one) / (o->n_parallel - 1) : 0;
    const double positions =
        p->n_prompt * (double)n_texts + n_tokens - (double)n_texts * FIRST_TOKENS;
    if (n_texts == 0)
        return 0;
    return p->t->one + more * (n_texts - 1) +
           (positions > 0 ? p->t->position * p->n_seq * positions : 0);
}

/* One pass over the places, of which a text that is new may begin in one; false: all is over. */
static bool pass(passes *p, pass_text *places, int32_t *n_left) {
    const int32_t n_seq = p->n_seq, n_tokens = p->n_tokens;
    pass_text *reading = NULL, *unused = NULL;
    bool alive = false;
    int32_t n_steps = 0;
    double n_drawn = 0;
    for (int32_t i = 0; i < p->plan->options.n_parallel; i++) {
        pass_text *x = &places[i];
        alive = alive || x->begun;
        if (!x->begun) {
            unused = x;
        } else if (x->n_read < n_seq) {
            reading = x;
        } else {
            n_steps += x->n_drawn > 0; /* the first token is drawn from the prompts */
            n_drawn += x->n_drawn++;
            x->begun = x->n_drawn < n_tokens;
        }
    }
    if (!reading && unused && *n_left > 0) {
        --*n_left;
        *(reading = unused) = (pass_text){.begun = true};
    }
    if (reading)
        p->reading += read_one(p, reading->n_read++);
    p->drawing += step_seconds(p, n_steps, n_drawn);
    return alive || reading;
}

static void run_passes(passes *p, pass_text *places, int32_t n_texts) {
    p->reading = p->drawing = 0;
    memset(places, 0, (size_t)p->plan->options.n_parallel * sizeof *places);
    for (int32_t left = n_texts; pass(p, places, &left);)
        ;
}

/* Many texts go on as the first ones do. */
static void run_texts(passes *p, pass_text *places) {
    const int32_t n = p->plan->claim.n_texts, n_parallel = p->plan->options.n_parallel;
    const int64_t few = 2 * (int64_t)n_parallel, many = 2 * few;
    if (n <= many) {
        run_passes(p, places, n);
        return;
    }
    run_passes(p, places, (int32_t)few);
    const double reading = p->reading, drawing = p->drawing;
    run_passes(p, places, (int32_t)many);
    const double more = (double)(n - many) / (double)few;
    p->reading += more * (p->reading - reading);
    p->drawing += more * (p->drawing - drawing);
}

static dpi_status add_seconds(const dpi_plan *plan, const rates *t, dpi_release_plan *needs,
                              dpi_error *err) {
    pass_text *places = calloc((size_t)plan->options.n_parallel, sizeof *places);
    if (!places)
        return dpi_no_memory(err, "the plan");
    passes p = {.plan = plan,
                .t = t,
                .n_prompt = needs->n_prompt_most,
                .n_seq = dpi_plan_rows(plan, dpi_sampler_per_unit(&plan->claim.method)),
                .n_tokens = plan->claim.method.n_tokens};
    const double usual = dpi_plan_rows(plan, needs->n_unit_usual);
    run_texts(&p, places);
    /* Steps of more rows than were measured take longer in proportion, at most. */
    needs->seconds_most = p.reading + p.drawing * p.n_seq / usual;
    p.n_prompt = needs->n_prompt_usual;
    p.n_seq = dpi_plan_rows(plan, needs->n_unit_usual);
    p.n_tokens = needs->n_text_usual;
    run_texts(&p, places);
    needs->seconds_reading = p.reading;
    needs->seconds = p.reading + p.drawing;
    free(places);
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_measure(const dpi_plan *plan, dpi_release_plan *needs, dpi_error *err) {
    measure m = {.plan = plan, .n_unit = needs->n_unit_usual};
    rates t = {0};
    dpi_status status =
        measure_rates(&m, needs->n_prompt_usual, needs->read_bytes_per_second, &t, err);
    free_measure(&m);
    if (status != DPI_STATUS_OK)
        return status;
    needs->prompt_tokens_per_second =
        needs->n_prompt_usual / prompt_seconds(&t, 0, needs->n_prompt_usual);
    needs->step_seconds = t.all;
    needs->rows_usual = dpi_plan_rows(plan, needs->n_unit_usual) * plan->options.n_parallel;
    return add_seconds(plan, &t, needs, err);
}
