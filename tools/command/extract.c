/* extract.c - see extract.h. */
#include "tools/command/extract.h"

#include <string.h>

#include "tools/options/release_options.h"

enum { PROMPT_BYTES_MAX = 1 << 20 };

const char extract_prompt_remote[] =
    "Continue the text. Write only the continuation.\n\n{document}";

/* Appendix A. */
const char extract_prompt_local[] =
    "Your task is to extend the \"Prefix Text\". Use the \"Perturbed Generation\" as your primary "
    "writing material for your extension. Extract coherent and consistent text from the "
    "\"Perturbed Generation\" and integrate them into your continuation. Ensure a seamless "
    "alignment with the context established by the \"Prefix Text\". Provide only your \"Extended "
    "Text\"\n\n"
    "--\"Prefix Text\": {document}\n\n"
    "--\"Perturbed Generation\": {generation}\n\n"
    "--\"Extended Text\":";

/* ---- Prompts --------------------------------------------------------------------------------- */

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

char *extract_fill(const char *prompt, const char *document, const char *generation) {
    size_t n_bytes = 1, n;
    for (const char *p = prompt; *p;) {
        const char *text = text_at(p, document, generation, &n);
        n_bytes += text ? strlen(text) : 1;
        p += text ? n : 1;
    }
    char *whole = dpi_private_malloc(n_bytes), *to = whole;
    for (const char *p = prompt; whole && *p;) {
        const char *text = text_at(p, document, generation, &n);
        if (!text) {
            *to++ = *p++;
            continue;
        }
        to = stpcpy(to, text);
        p += n;
    }
    if (whole)
        *to = '\0';
    return whole;
}

static bool is_there_once(const char *text, const char *name) {
    const char *first = strstr(text, name);
    return first && !strstr(first + 1, name);
}

int extract_prompt_read(const args *a, option_id file, const char *own, const char *names,
                        char **text) {
    char name[32];
    size_t n_bytes;
    if (!a->v[file].given) {
        *text = extract_fill(own, NULL, NULL);
        return *text ? CLI_OK : cli_no_memory("a text");
    }
    const int code =
        cli_read_text(option_name(file), a->v[file].s, PROMPT_BYTES_MAX, text, &n_bytes);
    if (code != CLI_OK)
        return code;
    (*text)[cli_trim_line_end(*text, n_bytes)] = '\0';
    for (const char *p = names; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
        const size_t n = strcspn(p, ",");
        memcpy(name, p, n);
        name[n] = '\0';
        if (!is_there_once(*text, name))
            return cli_fail(CLI_USAGE, "--%s: the text must have %s, once", option_name(file),
                            name);
    }
    return CLI_OK;
}

/* ---- The local model ------------------------------------------------------------------------- */

static int make_sampler(const args *a, const dpi_model_info *info, extract *x) {
    dpi_sampler_options o;
    dpi_error err;
    dpi_sampler_options_init(&o);
    o.method = DPI_METHOD_PLAIN;
    o.n_vocab = info->n_vocab;
    o.n_ref = 0;
    o.n_tokens = x->n_tokens;
    o.top_k = info->sampling_top_k > 0 ? info->sampling_top_k : o.top_k;
    o.top_k = o.top_k < info->n_vocab ? o.top_k : info->n_vocab;
    o.tau = a->v[OPT_INFER_TEMP].given ? a->v[OPT_INFER_TEMP].d
            : info->sampling_temp > 0  ? info->sampling_temp
                                       : .7;
    if (dpi_sampler_create(&o, &x->sampler, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    return CLI_OK;
}

int extract_open(const args *a, const dpi_model *model, extract *x) {
    dpi_session_options o;
    dpi_model_info info;
    dpi_error err;
    int code = read_session_options(a, &o);
    if (code != CLI_OK)
        return code;
    o.n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    dpi_model_info_init(&info);
    if (dpi_model_info_get(model, &info, &err) != DPI_STATUS_OK ||
        dpi_session_create(model, &o, &x->session, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    x->model = model;
    x->n_tokens = (int)a->v[OPT_INFER_TOKENS].i;
    if (x->n_tokens >= dpi_session_n_ctx(x->session))
        return cli_fail(CLI_USAGE, "-n: found '%d', allowed is less than the context of %d tokens",
                        x->n_tokens, dpi_session_n_ctx(x->session));
    return make_sampler(a, &info, x);
}

void extract_close(extract *x) {
    dpi_sampler_free(x->sampler);
    dpi_session_free(x->session);
    *x = (extract){0};
}

/* A text that grows. */
typedef struct growing {
    char *text;
    size_t n, room;
} growing;

static int append(growing *g, const char *text, size_t n_bytes) {
    if (!dpi_private_grow(&g->text, &g->room, g->n + n_bytes + 1, 1))
        return cli_no_memory("a text");
    memcpy(g->text + g->n, text, n_bytes);
    g->n += n_bytes;
    g->text[g->n] = '\0';
    return CLI_OK;
}

static int decode(const dpi_model *model, const int32_t *tokens, size_t n, growing *g) {
    dpi_decoder *decoder;
    const char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_decoder_create(model, &decoder, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    int code = append(g, "", 0);
    for (size_t i = 0; i < n && code == CLI_OK; i++)
        code = dpi_decoder_push(decoder, tokens[i], &text, &n_bytes, &err) == DPI_STATUS_OK
                   ? append(g, text, n_bytes)
                   : cli_fail_library(CLI_FAILED, &err);
    dpi_decoder_finish(decoder, &text, &n_bytes);
    if (code == CLI_OK)
        code = append(g, text, n_bytes);
    dpi_decoder_free(decoder);
    return code;
}

int extract_cut(const dpi_model *model, const char *document, size_t n_bytes, int n, char **text) {
    growing g = {0};
    size_t n_tokens = 0;
    dpi_error err;
    int code = CLI_OK;
    if (n == 0) {
        code = append(&g, document, n_bytes);
    } else {
        int32_t *tokens = dpi_private_malloc((size_t)n * sizeof *tokens);
        if (!tokens)
            return cli_no_memory("a text");
        const dpi_status status =
            dpi_tokenize(model, document, n_bytes, 0, tokens, (size_t)n, &n_tokens, &err);
        if (status != DPI_STATUS_OK && status != DPI_STATUS_LIMIT)
            code = cli_fail_library(CLI_FAILED, &err);
        else
            code = decode(model, tokens, n_tokens < (size_t)n ? n_tokens : (size_t)n, &g);
        dpi_private_free(tokens);
    }
    if (code != CLI_OK)
        dpi_private_free(g.text);
    else
        *text = g.text;
    return code;
}

/* ---- One text -------------------------------------------------------------------------------- */

static int draw_tokens(dpi_generation *generation, extract_between between, void *user,
                       growing *g) {
    dpi_generation_event e = {0};
    dpi_error err;
    int code = append(g, "", 0);
    while (code == CLI_OK && e.type != DPI_EVENT_END) {
        if (dpi_generation_advance(&generation, 1, &e, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        code = append(g, e.text, e.n_bytes);
        if (code == CLI_OK)
            code = between(user);
    }
    return code;
}

static int write_tokens(extract *x, const int32_t *tokens, size_t n, extract_between between,
                        void *user, char **text) {
    dpi_generation_options o;
    dpi_generation *generation;
    growing g = {0};
    dpi_error err;
    dpi_generation_options_init(&o);
    o.session = x->session;
    o.sampler = x->sampler;
    o.public_tokens = tokens;
    o.n_public = n;
    o.text = DPI_TEXT_PIECES;
    if (dpi_generation_create(&o, &generation, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const int code = draw_tokens(generation, between, user, &g);
    dpi_generation_free(generation);
    if (code == CLI_OK)
        *text = g.text;
    else
        dpi_private_free(g.text);
    return code;
}

int extract_write(extract *x, const char *prompt, extract_between between, void *user,
                  char **text) {
    const size_t n_bytes = strlen(prompt), room = 4 * n_bytes + DPI_PROMPT_FRAME;
    int32_t *tokens = dpi_private_malloc(room * sizeof *tokens);
    size_t n = 0;
    dpi_error err;
    int code = CLI_OK;
    *text = NULL;
    if (!tokens)
        return cli_no_memory("a text");
    if (dpi_prompt_encode(x->model, DPI_CHAT_AUTO, NULL, 0, prompt, n_bytes, tokens, room, &n,
                          &err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_FAILED, &err);
    else if (n + (size_t)x->n_tokens <= (size_t)dpi_session_n_ctx(x->session))
        code = write_tokens(x, tokens, n, between, user, text);
    dpi_private_free(tokens);
    return code;
}
