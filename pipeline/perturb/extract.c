/* extract.c - see dpinfer/extract.h. */
#include "dpinfer/extract.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "dpinfer.h"

/* ---- Prompts --------------------------------------------------------------------------------- */

const char *dpi_extract_prompt_remote(void) {
    return "Continue the text. Write only the continuation.\n\n{document}";
}

const char *dpi_extract_prompt_local(void) {
    return "Your task is to extend the \"Prefix Text\". Use the \"Perturbed Generation\" as your "
           "primary writing material for your extension. Extract coherent and consistent text from "
           "the \"Perturbed Generation\" and integrate them into your continuation. Ensure a "
           "seamless alignment with the context established by the \"Prefix Text\". Provide only "
           "your \"Extended Text\"\n\n"
           "--\"Prefix Text\": {document}\n\n"
           "--\"Perturbed Generation\": {generation}\n\n"
           "--\"Extended Text\":";
}

/* What a name at p stands for; NULL: there is none. */
static const char *text_at(const char *p, const char *document, const char *generation, size_t *n) {
    static const char *const names[] = {"{document}", "{generation}"};
    const char *const texts[] = {document, generation};
    for (int i = 0; i < 2; i++)
        if (texts[i] && strncmp(p, names[i], strlen(names[i])) == 0) {
            *n = strlen(names[i]);
            return texts[i];
        }
    return NULL;
}

dpi_status dpi_extract_fill(const char *prompt, const char *document, const char *generation,
                            char **text, dpi_error *err) {
    size_t n_bytes = 1, n;
    for (const char *p = prompt; *p;) {
        const char *in_place = text_at(p, document, generation, &n);
        n_bytes += in_place ? strlen(in_place) : 1;
        p += in_place ? n : 1;
    }
    char *to = dpi_private_malloc(n_bytes);
    if (!to)
        return dpi_no_memory(err, "a text");
    *text = to;
    for (const char *p = prompt; *p;) {
        const char *in_place = text_at(p, document, generation, &n);
        if (!in_place) {
            *to++ = *p++;
            continue;
        }
        to = stpcpy(to, in_place);
        p += n;
    }
    *to = '\0';
    return DPI_STATUS_OK;
}

/* ---- A text that grows ----------------------------------------------------------------------- */

typedef struct growing {
    char *text;
    size_t n, room;
} growing;

static dpi_status append(growing *g, const char *text, size_t n_bytes, dpi_error *err) {
    if (!dpi_private_grow(&g->text, &g->room, g->n + n_bytes + 1, 1))
        return dpi_no_memory(err, "a text");
    memcpy(g->text + g->n, text, n_bytes);
    g->n += n_bytes;
    g->text[g->n] = '\0';
    return DPI_STATUS_OK;
}

/* What comes of it: *text, or nothing after a failure. */
static dpi_status end_growing(growing *g, dpi_status status, char **text) {
    if (status == DPI_STATUS_OK)
        *text = g->text;
    else
        dpi_private_free(g->text);
    return status;
}

static dpi_status decode(dpi_decoder *decoder, const int32_t *tokens, size_t n, growing *g,
                         dpi_error *err) {
    const char *text;
    size_t n_bytes;
    DPI_TRY(append(g, "", 0, err));
    for (size_t i = 0; i < n; i++) {
        DPI_TRY(dpi_decoder_push(decoder, tokens[i], &text, &n_bytes, err));
        DPI_TRY(append(g, text, n_bytes, err));
    }
    dpi_decoder_finish(decoder, &text, &n_bytes);
    return append(g, text, n_bytes, err);
}

/* The first n tokens, at most, with room for them. */
static dpi_status cut(const dpi_model *model, const char *document, size_t n_bytes, size_t n,
                      int32_t *tokens, growing *g, dpi_error *err) {
    dpi_decoder *decoder;
    size_t n_tokens = 0;
    dpi_status status = dpi_tokenize(model, document, n_bytes, 0, tokens, n, &n_tokens, err);
    if (status != DPI_STATUS_OK && status != DPI_STATUS_LIMIT)
        return status;
    DPI_TRY(dpi_decoder_create(model, &decoder, err));
    status = decode(decoder, tokens, n_tokens < n ? n_tokens : n, g, err);
    dpi_decoder_free(decoder);
    return status;
}

dpi_status dpi_extract_cut(const dpi_model *model, const char *document, size_t n_bytes, int32_t n,
                           char **text, dpi_error *err) {
    growing g = {0};
    if (n == 0)
        return end_growing(&g, append(&g, document, n_bytes, err), text);
    int32_t *tokens = dpi_private_malloc((size_t)n * sizeof *tokens);
    if (!tokens)
        return dpi_no_memory(err, "a text");
    const dpi_status status = cut(model, document, n_bytes, (size_t)n, tokens, &g, err);
    dpi_private_free(tokens);
    return end_growing(&g, status, text);
}

/* ---- The local model ------------------------------------------------------------------------- */

struct dpi_extract {
    dpi_extract_options o;
    dpi_session *session;
    dpi_sampler *sampler;
};

void dpi_extract_options_init_size(dpi_extract_options *options, size_t size) {
    dpi_extract_options made = {.n_tokens = 100};
    dpi_session_options_init(&made.session);
    dpi_struct_init(options, size, &made, sizeof made);
}

static dpi_status make_sampler(dpi_extract *x, dpi_error *err) {
    dpi_sampler_options o;
    dpi_model_info info;
    dpi_sampler_options_init(&o);
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(x->o.model, &info, err));
    o.method = DPI_METHOD_PLAIN;
    o.n_vocab = info.n_vocab;
    o.n_ref = 0;
    o.n_tokens = x->o.n_tokens;
    o.top_k = info.sampling_top_k > 0 ? info.sampling_top_k : o.top_k;
    o.top_k = o.top_k < info.n_vocab ? o.top_k : info.n_vocab;
    o.tau = x->o.tau > 0 ? x->o.tau : info.sampling_temp > 0 ? info.sampling_temp : .7;
    return dpi_sampler_create(&o, &x->sampler, err);
}

static dpi_status open_all(dpi_extract *x, dpi_error *err) {
    DPI_TRY(dpi_session_create(x->o.model, &x->o.session, &x->session, err));
    const int32_t n_ctx = dpi_session_n_ctx(x->session);
    if (x->o.n_tokens < 1 || x->o.n_tokens >= n_ctx)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "T: found '%d', allowed is less than the context of %d tokens",
                        (int)x->o.n_tokens, (int)n_ctx);
    return make_sampler(x, err);
}

dpi_status dpi_extract_open(const dpi_extract_options *options, dpi_extract **extract,
                            dpi_error *err) {
    DPI_COPY_STRUCT(dpi_extract_options, o, options, err);
    dpi_extract *x = calloc(1, sizeof *x);
    if (!x)
        return dpi_no_memory(err, "a session");
    x->o = o;
    const dpi_status status = open_all(x, err);
    if (status == DPI_STATUS_OK)
        *extract = x;
    else
        dpi_extract_free(x);
    return status;
}

void dpi_extract_free(dpi_extract *x) {
    if (!x)
        return;
    dpi_sampler_free(x->sampler);
    dpi_session_free(x->session);
    free(x);
}

/* ---- One text -------------------------------------------------------------------------------- */

static dpi_status draw_tokens(dpi_generation *generation, dpi_cancel_fn between, void *user,
                              growing *g, dpi_error *err) {
    dpi_generation_event e = {0};
    DPI_TRY(append(g, "", 0, err));
    while (e.type != DPI_EVENT_END) {
        DPI_TRY(dpi_generation_advance(&generation, 1, &e, err));
        DPI_TRY(append(g, e.text, e.n_bytes, err));
        if (between && between(user))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled between tokens");
    }
    return DPI_STATUS_OK;
}

static dpi_status write_after(dpi_extract *x, const int32_t *tokens, size_t n,
                              dpi_cancel_fn between, void *user, char **text, dpi_error *err) {
    dpi_generation_options o;
    dpi_generation *generation;
    growing g = {0};
    dpi_generation_options_init(&o);
    o.session = x->session;
    o.sampler = x->sampler;
    o.public_tokens = tokens;
    o.n_public = n;
    o.text = DPI_TEXT_PIECES;
    DPI_TRY(dpi_generation_create(&o, &generation, err));
    const dpi_status status = draw_tokens(generation, between, user, &g, err);
    dpi_generation_free(generation);
    return end_growing(&g, status, text);
}

dpi_status dpi_extract_write(dpi_extract *x, const char *prompt, dpi_cancel_fn between, void *user,
                             char **text, dpi_error *err) {
    const size_t n_bytes = strlen(prompt), room = 4 * n_bytes + DPI_PROMPT_FRAME;
    int32_t *tokens = dpi_private_malloc(room * sizeof *tokens);
    size_t n = 0;
    if (!tokens)
        return dpi_no_memory(err, "a text");
    *text = NULL;
    dpi_status status = dpi_prompt_encode(x->o.model, DPI_CHAT_AUTO, NULL, 0, prompt, n_bytes,
                                          tokens, room, &n, err);
    if (status == DPI_STATUS_OK &&
        n + (size_t)x->o.n_tokens <= (size_t)dpi_session_n_ctx(x->session))
        status = write_after(x, tokens, n, between, user, text, err);
    dpi_private_free(tokens);
    return status;
}
