/* writer.c - see writer.h. */
#include "tools/writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/partition.h"

struct writer {
    const job *j;
    writer_hooks hooks;
    dpi_session *session;
    dpi_sampler *sampler; /* the job's, if it has one */
    dpi_decoder *decoder;
    partition parts;
    int32_t n_ref; /* slots of a text; private where j->assigned */
    /* the prompts of one batch, private: [n_ref] */
    int32_t **tokens;
    size_t *n_tokens;
    int64_t n_null; /* derived from the records */
    int32_t index;  /* of the text that is being drawn */
    int failed;     /* CLI_OK, or what a hook stopped it with */
};

/* ---- Hooks of dpi_generate ------------------------------------------------------------------- */

static int put(writer *w, const char *text, size_t n_bytes) {
    return n_bytes > 0 ? w->hooks.on_text(w->hooks.user, text, n_bytes) : CLI_OK;
}

/* The token is already released, so that its text goes out at once. */
static int32_t on_token(void *user, int32_t token) {
    writer *w = user;
    const char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_decoder_push(w->decoder, token, &text, &n_bytes, &err) != DPI_STATUS_OK)
        w->failed = cli_fail_library(CLI_FAILED, &err);
    else
        w->failed = put(w, text, n_bytes);
    return w->failed != CLI_OK;
}

static void on_progress(void *user, int32_t n_drawn, int32_t n_tokens) {
    writer *w = user;
    w->hooks.on_progress(w->hooks.user, n_drawn, n_tokens);
}

static int32_t is_cancelled(void *user) {
    writer *w = user;
    return w->hooks.cancel(w->hooks.user);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* The prompt of record i into slot `slot`, or null. */
static int load_record(writer *w, int64_t i, int32_t slot) {
    char *text;
    size_t n_bytes;
    int code = CLI_OK;
    if (records_read(w->j->docs, (size_t)i, &text, &n_bytes)) {
        code = prompts_encode(&w->j->prompts, text, n_bytes, &w->tokens[slot], &w->n_tokens[slot]);
        private_free(text);
    }
    if (code == CLI_OK && !w->tokens[slot])
        w->n_null++;
    return code;
}

static void drop_prompts(writer *w, int32_t n) {
    for (int32_t slot = 0; slot < n; slot++) {
        private_free(w->tokens[slot]);
        w->tokens[slot] = NULL;
        w->n_tokens[slot] = 0;
    }
}

/* The records of text b: b B .. b B + B - 1, or those that were assigned to it. Slots past the last
 * record stay null. */
static int load_batch(writer *w) {
    const int32_t *batch = w->parts.batch;
    int64_t first = batch ? 0 : (int64_t)w->index * w->n_ref;
    int32_t slot = 0;
    for (int64_t i = first; i < w->j->n_records && slot < w->n_ref; i++) {
        if (batch && batch[i] != w->index)
            continue;
        int code = load_record(w, i, slot++);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int generate(writer *w, const dpi_generate_input *input, writer_result *result) {
    dpi_generate_hooks hooks = {.struct_size = sizeof hooks, .on_token = on_token,
                                .on_progress = on_progress, .user = w,
                                .cancel = w->hooks.cancel ? is_cancelled : NULL};
    dpi_generate_result drawn = {.struct_size = sizeof drawn};
    dpi_error err;
    w->failed = CLI_OK;
    dpi_status status = dpi_generate(w->session, w->sampler, input, &hooks, &drawn, &err);
    *result = (writer_result){.n_drawn = drawn.n_drawn, .ended = drawn.ended == 1};
    int code = w->failed;
    result->cancelled = code == CLI_OK && status == DPI_STATUS_CANCELLED;
    if (code == CLI_OK && status != DPI_STATUS_OK && !result->cancelled)
        code = cli_fail_library(CLI_FAILED, &err);
    /* What was released is written, whatever happened. */
    const char *text;
    size_t n_bytes;
    dpi_decoder_finish(w->decoder, &text, &n_bytes);
    int written = put(w, text, n_bytes);
    return code != CLI_OK ? code : written;
}

static int generate_private(writer *w, writer_result *result) {
    const job *j = w->j;
    int code = load_batch(w);
    if (code == CLI_OK) {
        dpi_generate_input input = {.struct_size = sizeof input,
            .public_tokens = j->prompts.public_tokens, .n_public = j->prompts.n_public_tokens,
            .reference_tokens = (const int32_t *const *)w->tokens,
            .n_reference_tokens = w->n_tokens, .n_ref = w->n_ref,
            .n_tokens = j->sampler.n_tokens, .n_prefix = j->prompts.n_prefix};
        code = generate(w, &input, result);
    }
    drop_prompts(w, w->n_ref);
    return code;
}

/* Without privacy: continues the public prompt, or the private prompt of one record. */
static int generate_plain(writer *w, writer_result *result) {
    const job *j = w->j;
    dpi_generate_input input = {.struct_size = sizeof input,
        .public_tokens = j->prompts.public_tokens, .n_public = j->prompts.n_public_tokens,
        .n_tokens = j->sampler.n_tokens};
    int code = CLI_OK;
    if (j->reference >= 0) {
        code = load_record(w, j->reference, 0);
        if (code == CLI_OK && !w->tokens[0])
            code = cli_fail(CLI_RECORDS, "record %" PRId64 " is empty or unreadable",
                            j->reference + 1);
        input.public_tokens = w->tokens[0];
        input.n_public = w->n_tokens[0];
    }
    if (code == CLI_OK)
        code = generate(w, &input, result);
    drop_prompts(w, 1);
    return code;
}

int writer_text(writer *w, int32_t index, writer_result *result) {
    *result = (writer_result){0};
    w->index = index;
    return w->j->plain ? generate_plain(w, result) : generate_private(w, result);
}

int64_t writer_null_records(const writer *w) { return w->n_null; }

/* ---- The engine ------------------------------------------------------------------------------ */

static int create_engine(writer *w) {
    const job *j = w->j;
    dpi_session_options options = j->session;
    dpi_sampler_options sampler = j->sampler;
    dpi_error err;
    int code = partition_make(j, &w->parts);
    if (code != CLI_OK)
        return code;
    w->n_ref = sampler.n_ref = w->parts.n_slots;
    options.n_seq = w->n_ref + 1;
    options.cancel = w->hooks.cancel;
    options.cancel_user = w->hooks.user;
    w->sampler = j->made;
    if (dpi_session_create(j->model, &options, &w->session, &err) != DPI_STATUS_OK ||
        (!w->sampler && dpi_sampler_create(&sampler, &w->sampler, &err) != DPI_STATUS_OK) ||
        dpi_decoder_create(j->model, &w->decoder, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    size_t n_slots = (size_t)w->n_ref + 1;
    w->tokens = calloc(n_slots, sizeof *w->tokens);
    w->n_tokens = calloc(n_slots, sizeof *w->n_tokens);
    if (!w->tokens || !w->n_tokens)
        return cli_fail(CLI_FAILED, "out of memory for %zu prompts", n_slots);
    return CLI_OK;
}

int writer_open(const job *j, const writer_hooks *hooks, writer **out) {
    writer *w = *out = calloc(1, sizeof *w);
    if (!w)
        return cli_fail(CLI_FAILED, "out of memory for a writer");
    w->j = j;
    w->hooks = *hooks;
    int code = create_engine(w);
    if (code != CLI_OK) {
        writer_close(w);
        *out = NULL;
    }
    return code;
}

void writer_close(writer *w) {
    if (!w)
        return;
    dpi_decoder_free(w->decoder);
    if (w->sampler != w->j->made)
        dpi_sampler_free(w->sampler);
    dpi_session_free(w->session);
    free(w->tokens);
    free(w->n_tokens);
    partition_free(&w->parts);
    free(w);
}
