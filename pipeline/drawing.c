/* drawing.c - see drawing.h. */
#include "dpinfer/drawing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "dpinfer.h"

enum { PARALLEL = 32 };

/* A text from its first token until it is told, which is in the order of their numbers. */
typedef struct drawn {
    char *data; /* [n_bytes] when it is over */
    size_t n_bytes;
    int32_t n_drawn;
    bool over, ended;
} drawn;

/* Place for one text after the other. */
typedef struct slot {
    dpi_generation *generation; /* NULL: free */
    dpi_sampler *sampler;
    uint64_t bits; /* seeded: of the text's random bits */
    int32_t index;
} slot;

struct dpi_drawing {
    dpi_drawing_options o;
    dpi_session *session; /* sequences of the slots, then of the prompts */
    int32_t n_kept, kept[DPI_DRAWING_PROMPTS]; /* which prompt each of these has; -1: none */
    slot slots[DPI_DRAWING_PARALLEL_MAX];
    int32_t n_slots, n_begun, n_told;
    drawn *texts; /* [n_texts] */
};

/* ---- Opening --------------------------------------------------------------------------------- */

void dpi_drawing_options_init_size(dpi_drawing_options *options, size_t size) {
    dpi_drawing_options made = {.n_parallel = PARALLEL};
    dpi_session_options_init(&made.session);
    dpi_sampler_options_init(&made.method);
    made.method.method = DPI_METHOD_PLAIN;
    made.method.n_ref = 0;
    made.method.n_tokens = 0;
    dpi_struct_init(options, size, &made, sizeof made);
}

static dpi_status check(const dpi_drawing_options *o, dpi_error *err) {
    int64_t n = 0;
    if (!o->model || !o->prompts)
        return dpi_fail(err, DPI_STATUS_ARG, "the model or the prompts of a drawing are NULL");
    if (o->method.method != DPI_METHOD_PLAIN)
        return dpi_fail(err, DPI_STATUS_ARG, "method: found %d, allowed plain (%d)",
                        (int)o->method.method, DPI_METHOD_PLAIN);
    DPI_TRY(dpi_check_range("n_prompts", o->n_prompts, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_texts", o->n_texts, 1, INT32_MAX / 2, err));
    DPI_TRY(dpi_check_range("n_parallel", o->n_parallel, 1, DPI_DRAWING_PARALLEL_MAX, err));
    for (int32_t i = 0; o->shares && i < o->n_prompts; i++) {
        DPI_TRY(dpi_check_range("shares", o->shares[i], 0, o->n_texts, err));
        n += o->shares[i];
    }
    return !o->shares || n == o->n_texts
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG, "shares: found %lld texts, allowed n_texts, %d",
                          (long long)n, (int)o->n_texts);
}

/* Tokens of the longest prompt. */
static dpi_status find_longest(const dpi_drawing_options *o, int32_t *longest, dpi_error *err) {
    dpi_prompts_info info;
    *longest = 0;
    dpi_prompts_info_init(&info);
    for (int32_t i = 0; i < o->n_prompts; i++) {
        DPI_TRY(dpi_prompts_info_get(o->prompts[i], &info, err));
        *longest = info.n_public > *longest ? info.n_public : *longest;
    }
    return DPI_STATUS_OK;
}

static dpi_status make_samplers(dpi_drawing *d, dpi_error *err) {
    dpi_sampler_options *m = &d->o.method;
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(d->o.model, &info, err));
    m->n_vocab = info.n_vocab;
    if (m->n_tokens == 0)
        m->n_tokens = dpi_tokens_default(info.n_ctx_train);
    for (int32_t i = 0; i < d->n_slots; i++) {
        m->random = d->o.seeded ? dpi_random_insecure : NULL;
        m->random_user = d->o.seeded ? &d->slots[i].bits : NULL;
        DPI_TRY(dpi_sampler_create(m, &d->slots[i].sampler, err));
    }
    return DPI_STATUS_OK;
}

/* Texts go on from copies of the caches of prompts, with their vectors; a prompt makes place for
 * another one where there are many. */
static dpi_status open_session(dpi_drawing *d, dpi_error *err) {
    int32_t longest;
    d->n_kept = d->o.n_prompts < DPI_DRAWING_PROMPTS ? d->o.n_prompts : DPI_DRAWING_PROMPTS;
    for (int32_t i = 0; i < d->n_kept; i++)
        d->kept[i] = -1;
    DPI_TRY(find_longest(&d->o, &longest, err));
    d->o.session.n_seq = d->n_slots + d->n_kept;
    d->o.session.n_ctx = longest + d->o.method.n_tokens;
    d->o.session.steers = d->o.sets != NULL;
    return dpi_session_create(d->o.model, &d->o.session, &d->session, err);
}

static dpi_status open_all(dpi_drawing *d, dpi_error *err) {
    d->texts = calloc((size_t)d->o.n_texts, sizeof *d->texts);
    if (!d->texts)
        return dpi_no_memory(err, "texts");
    d->n_slots = d->o.n_parallel < d->o.n_texts ? d->o.n_parallel : d->o.n_texts;
    DPI_TRY(make_samplers(d, err));
    return open_session(d, err);
}

dpi_status dpi_drawing_open(const dpi_drawing_options *options, dpi_drawing **drawing,
                            dpi_error *err) {
    DPI_COPY_STRUCT(dpi_drawing_options, o, options, err);
    DPI_TRY(check(&o, err));
    dpi_drawing *d = calloc(1, sizeof *d);
    if (!d)
        return dpi_no_memory(err, "texts");
    d->o = o;
    const dpi_status status = open_all(d, err);
    if (status == DPI_STATUS_OK)
        *drawing = d;
    else
        dpi_drawing_free(d);
    return status;
}

void dpi_drawing_free(dpi_drawing *d) {
    if (!d)
        return;
    for (int32_t i = 0; i < d->n_slots; i++) {
        dpi_generation_free(d->slots[i].generation);
        dpi_sampler_free(d->slots[i].sampler);
    }
    for (int32_t i = 0; d->texts && i < d->o.n_texts; i++)
        free(d->texts[i].data);
    free(d->texts);
    dpi_session_free(d->session);
    free(d);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int32_t prompt_of(const dpi_drawing *d, int32_t index) {
    int32_t prompt = 0;
    if (!d->o.shares)
        return index % d->o.n_prompts;
    for (; prompt + 1 < d->o.n_prompts && index >= d->o.shares[prompt]; prompt++)
        index -= d->o.shares[prompt];
    return prompt;
}

/* The sequence that has a prompt, of n tokens. */
static dpi_status prompt_sequence(dpi_drawing *d, int32_t prompt, int32_t n, int32_t *seq,
                                  dpi_error *err) {
    const int32_t place = prompt % d->n_kept;
    *seq = d->n_slots + place;
    if (d->kept[place] == prompt)
        return DPI_STATUS_OK;
    d->kept[place] = -1;
    dpi_session_reset(d->session, *seq);
    if (d->o.sets)
        DPI_TRY(dpi_session_steer(d->session, *seq, d->o.sets[prompt], err));
    DPI_TRY(dpi_session_prefill(d->session, *seq, dpi_prompts_public(d->o.prompts[prompt]),
                                (size_t)n, NULL, err));
    d->kept[place] = prompt;
    return DPI_STATUS_OK;
}

static dpi_status begin_text(dpi_drawing *d, int32_t seq, dpi_error *err) {
    slot *s = &d->slots[seq];
    const dpi_prompts *prompts = d->o.prompts[prompt_of(d, d->n_begun)];
    int32_t prompt_seq = 0;
    dpi_generation_options o;
    dpi_generation_event event;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    DPI_TRY(prompt_sequence(d, prompt_of(d, d->n_begun), info.n_public, &prompt_seq, err));
    s->index = d->n_begun++;
    s->bits = d->o.seed * 0x9e3779b97f4a7c15u + (uint64_t)s->index;
    dpi_generation_options_init(&o);
    o.session = d->session, o.sampler = s->sampler, o.first_seq = seq;
    o.text = DPI_TEXT_WHOLE;
    o.public_tokens = dpi_prompts_public(prompts), o.n_public = (size_t)info.n_public;
    o.prompt_seqs = &prompt_seq;
    o.mask = d->o.mask;
    o.rules = d->o.rules, o.n_answer = info.n_answer;
    DPI_TRY(dpi_generation_create(&o, &s->generation, err));
    /* The prompt is there, so that this advance forks it: prompt_seq has to live no longer. */
    return dpi_generation_advance(&s->generation, 1, &event, err);
}

static dpi_status keep_text(drawn *t, const dpi_generation_event *e, dpi_error *err) {
    t->data = malloc(e->n_bytes + 1);
    if (!t->data)
        return dpi_no_memory(err, "texts");
    memcpy(t->data, e->text, e->n_bytes);
    t->n_bytes = e->n_bytes;
    t->n_drawn = e->n_drawn;
    t->over = true, t->ended = dpi_end_is_own(e->end);
    return DPI_STATUS_OK;
}

static bool is_cancelled(const dpi_drawing *d) {
    return d->o.session.cancel && d->o.session.cancel(d->o.session.cancel_user);
}

/* One token of each text that is open. *open: whether there is one. */
static dpi_status advance(dpi_drawing *d, bool *open, dpi_error *err) {
    dpi_generation *live[DPI_DRAWING_PARALLEL_MAX];
    dpi_generation_event events[DPI_DRAWING_PARALLEL_MAX];
    *open = false;
    for (int32_t i = 0; i < d->n_slots; i++) {
        if (!d->slots[i].generation && d->n_begun < d->o.n_texts && !is_cancelled(d))
            DPI_TRY(begin_text(d, i, err));
        live[i] = d->slots[i].generation;
        *open |= live[i] != NULL;
    }
    if (!*open)
        return DPI_STATUS_OK;
    const dpi_status status = dpi_generation_advance(live, d->n_slots, events, err);
    for (int32_t i = 0; i < d->n_slots; i++) {
        if (events[i].type != DPI_EVENT_END)
            continue;
        DPI_TRY(keep_text(&d->texts[d->slots[i].index], &events[i], err));
        dpi_generation_free(d->slots[i].generation);
        d->slots[i].generation = NULL;
    }
    return status;
}

dpi_status dpi_drawing_next(dpi_drawing *d, dpi_drawn_text *text, dpi_error *err) {
    bool open = true;
    *text = (dpi_drawn_text){.index = -1, .data = ""};
    if (d->n_told > 0) {
        free(d->texts[d->n_told - 1].data);
        d->texts[d->n_told - 1].data = NULL;
    }
    if (d->n_told == d->o.n_texts)
        return DPI_STATUS_OK;
    const drawn *t = &d->texts[d->n_told];
    while (!t->over && open)
        DPI_TRY(advance(d, &open, err));
    if (!t->over)
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled between texts");
    *text = (dpi_drawn_text){d->n_told, prompt_of(d, d->n_told), t->n_drawn, t->ended, t->data,
                             t->n_bytes};
    d->n_told++;
    return DPI_STATUS_OK;
}
