/* generate.c - the loop: prompts into caches, logits into the sampler, tokens out.
 *
 * What is released is a function of what the sampler draws. Only public things steer the loop: the
 * number of slots, T, and the tokens already released; a null slot changes nothing but the time
 * that a step takes (which is out of scope, dp/PRIVACY.md). Of the references' logits only those of
 * the candidates are computed, where these are few; the public logits say which. Stopping at an
 * end-of-generation token is post-processing of a released token: it neither costs nor refunds
 * anything (docs/spec.md section 1). */
#include <stdlib.h>

#include "dpinfer.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/methods/sampler.h"

typedef struct loop {
    dpi_session *session;
    dpi_sampler *sampler;
    const dpi_generate_input *input;
    const dpi_generate_hooks *hooks;
    dpi_generate_result result;
    int32_t n_active;     /* sequences that are not null */
    int32_t first;        /* the first reference that was read; 0: none yet */
    bool partial;         /* steps compute all logits of sequence 0 only. Public */
    int32_t *seqs;        /* [n_active] */
    int32_t *tokens;      /* [n_active] the released token, once per sequence */
    const float **logits; /* [n_ref] NULL for null slots */
} loop;

static dpi_status check_prompt(const loop *l, size_t n_tokens, const char *which, dpi_error *err) {
    int32_t n_ctx = dpi_session_n_ctx(l->session), n_drawn = l->input->n_tokens;
    if (n_tokens == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "%s prompt has no tokens", which);
    /* A reference's own length is private: it is not named. */
    if (n_drawn > n_ctx || n_tokens > (size_t)(n_ctx - n_drawn))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "%s prompt: more than the %d tokens that a context of %d leaves beside "
                        "%d drawn ones",
                        which, (int)(n_ctx > n_drawn ? n_ctx - n_drawn : 0), (int)n_ctx,
                        (int)n_drawn);
    return DPI_STATUS_OK;
}

static dpi_status check_input(const loop *l, dpi_error *err) {
    const dpi_generate_input *in = l->input;
    if (in->struct_size != sizeof *in || l->hooks->struct_size != sizeof *l->hooks)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "dpi_generate: struct_size of input is %zu (must be %zu), of hooks %zu "
                        "(must be %zu)",
                        in->struct_size, sizeof *in, l->hooks->struct_size, sizeof *l->hooks);
    const dpi_sampler_options *o = dpi_sampler_options_get(l->sampler);
    if (in->n_ref != o->n_ref) /* private in some runs: not named */
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_generate: n_ref must be the sampler's");
    if (in->n_tokens != o->n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "dpi_generate: n_tokens is %d, must be the sampler's %d", (int)in->n_tokens,
                        (int)o->n_tokens);
    DPI_TRY(check_prompt(l, in->n_public, "the public", err));
    for (int32_t i = 0; i < in->n_ref; i++)
        if (in->reference_tokens[i])
            DPI_TRY(check_prompt(l, in->n_reference_tokens[i], "a reference", err));
    return DPI_STATUS_OK;
}

static const int32_t *prompt_of(const loop *l, int32_t seq, size_t *n) {
    const dpi_generate_input *in = l->input;
    *n = seq ? in->n_reference_tokens[seq - 1] : in->n_public;
    return seq ? in->reference_tokens[seq - 1] : in->public_tokens;
}

/* Tokens that a prompt shares with another one, among the public ones it begins with. One token is
 * left to compute: it gives the logits. */
static int32_t in_common(const loop *l, int32_t seq, int32_t other) {
    size_t n_a, n_b, n = 0, most = l->input->n_prefix;
    const int32_t *a = prompt_of(l, seq, &n_a), *b = prompt_of(l, other, &n_b);
    while (n < most && n + 1 < n_a && n < n_b && a[n] == b[n])
        n++;
    return (int32_t)n;
}

/* Takes over what the public prompt, or the first reference, has computed of the same beginning. */
static dpi_status share_prefix(loop *l, int32_t seq, int32_t *n_shared, dpi_error *err) {
    int32_t from = 0, n = in_common(l, seq, 0), n_first = l->first ? in_common(l, seq, l->first) : 0;
    if (n_first > n) {
        from = l->first;
        n = n_first;
    }
    *n_shared = n;
    return n ? dpi_session_fork(l->session, from, seq, n, err) : DPI_STATUS_OK;
}

static dpi_status read_prompt(loop *l, int32_t seq, dpi_error *err) {
    int32_t n_shared = 0;
    size_t n;
    const int32_t *tokens = prompt_of(l, seq, &n);
    const dpi_generate_hooks *h = l->hooks;
    if (h->cancel && h->cancel(h->user))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while reading prompts");
    if (seq > 0)
        DPI_TRY(share_prefix(l, seq, &n_shared, err));
    DPI_TRY(dpi_session_prefill(l->session, seq, tokens + n_shared, n - (size_t)n_shared, NULL, err));
    if (seq > 0 && l->first == 0)
        l->first = seq;
    l->seqs[l->n_active++] = seq;
    return DPI_STATUS_OK;
}

static dpi_status read_prompts(loop *l, dpi_error *err) {
    const dpi_generate_input *in = l->input;
    if (l->hooks->on_progress)
        l->hooks->on_progress(l->hooks->user, 0, in->n_tokens);
    DPI_TRY(read_prompt(l, 0, err));
    for (int32_t i = 0; i < in->n_ref; i++)
        if (in->reference_tokens[i])
            DPI_TRY(read_prompt(l, i + 1, err));
    return DPI_STATUS_OK;
}

/* The references' logits of the candidates, where the step has left them out. Few candidates now are
 * the sign of few after the next token. */
static dpi_status complete_logits(loop *l, const float *public_logits, dpi_error *err) {
    const int32_t *ids;
    int32_t n_ids;
    DPI_TRY(dpi_sampler_candidates(l->sampler, public_logits, &ids, &n_ids, err));
    if (l->partial)
        DPI_TRY(dpi_session_logits_at(l->session, ids, n_ids, err));
    l->partial = ids != NULL;
    return DPI_STATUS_OK;
}

static dpi_status draw(loop *l, int32_t *token, dpi_error *err) {
    const dpi_generate_hooks *h = l->hooks;
    const float *public_logits = dpi_session_logits(l->session, 0);
    DPI_TRY(complete_logits(l, public_logits, err));
    for (int32_t i = 0; i < l->input->n_ref; i++)
        l->logits[i] = l->input->reference_tokens[i] ? dpi_session_logits(l->session, i + 1) : NULL;
    DPI_TRY(dpi_sampler_step(l->sampler, public_logits, l->logits, token, err));
    l->result.n_drawn++;
    if (h->on_token && h->on_token(h->user, *token))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled after a token");
    if (h->on_progress)
        h->on_progress(h->user, l->result.n_drawn, l->input->n_tokens);
    return DPI_STATUS_OK;
}

static dpi_status run(loop *l, dpi_error *err) {
    const dpi_model *model = dpi_session_model(l->session);
    DPI_TRY(read_prompts(l, err));
    DPI_TRY(dpi_sampler_begin(l->sampler, err));
    for (;;) {
        if (l->hooks->cancel && l->hooks->cancel(l->hooks->user))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled between tokens");
        int32_t token;
        DPI_TRY(draw(l, &token, err));
        l->result.ended = dpi_token_is_eog(model, token);
        if (l->result.ended || l->result.n_drawn == l->input->n_tokens)
            return DPI_STATUS_OK;
        for (int32_t i = 0; i < l->n_active; i++)
            l->tokens[i] = token;
        DPI_TRY(dpi_session_step_partial(l->session, l->n_active, l->seqs, l->tokens,
                                         l->partial ? 1 : l->n_active, err));
    }
}

dpi_status dpi_generate(dpi_session *session, dpi_sampler *sampler, const dpi_generate_input *input,
                        const dpi_generate_hooks *hooks, dpi_generate_result *result,
                        dpi_error *err) {
    static const dpi_generate_hooks none = {.struct_size = sizeof none};
    loop l = {
        .session = session, .sampler = sampler, .input = input, .hooks = hooks ? hooks : &none};
    if (result && result->struct_size != sizeof *result)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_generate_result.struct_size is %zu, must be %zu",
                        result->struct_size, sizeof *result);
    DPI_TRY(check_input(&l, err));
    size_t n_seq = (size_t)input->n_ref + 1;
    l.seqs = dpi_calloc(n_seq, sizeof *l.seqs);
    l.tokens = dpi_calloc(n_seq, sizeof *l.tokens);
    l.logits = dpi_calloc(n_seq, sizeof *l.logits);
    dpi_status status =
        l.seqs && l.tokens && l.logits
            ? DPI_STATUS_OK
            : dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the sequences");
    if (status == DPI_STATUS_OK) {
        for (int32_t i = 0; i <= input->n_ref; i++)
            dpi_session_reset(session, i);
        status = run(&l, err);
        for (int32_t i = 0; i <= input->n_ref; i++)
            dpi_session_reset(session, i);
    }
    free(l.seqs);
    free(l.tokens);
    free(l.logits);
    if (result) {
        result->n_drawn = l.result.n_drawn;
        result->ended = l.result.ended;
    }
    return status;
}
