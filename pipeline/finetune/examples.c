#include "pipeline/finetune/examples.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/text.h"
#include "engine/model.h"
#include "tokenizer/vocab.h"

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the examples");
}

/* What ends a text; -1: the model has no such token. */
static int32_t end_of(const dpi_model *m) {
    if (m->vocab->eos >= 0 && dpi_token_is_eog(m, m->vocab->eos))
        return m->vocab->eos;
    for (int32_t t = 0; t < m->n_vocab; t++)
        if (dpi_token_is_eog(m, t))
            return t;
    return -1;
}

/* More than n_positions tokens are never used, so that no more are kept. */
static dpi_status encode(const dpi_example_format *f, const char *text, size_t n_bytes,
                         dpi_example *example, dpi_error *err) {
    const size_t most = (size_t)f->n_positions, room = 4 * n_bytes + 5;
    const int32_t end = end_of(f->model);
    size_t n = 0;
    int32_t *tokens = dpi_private_malloc((room + 1) * sizeof *tokens);
    if (!tokens)
        return no_memory(err);
    const dpi_status status = dpi_tokenize(f->model, text, n_bytes, 0, tokens, room, &n, err);
    if (status != DPI_STATUS_OK) {
        dpi_private_free(tokens);
        return status;
    }
    if (n < most && end >= 0)
        tokens[n++] = end;
    example->n = (int32_t)(n < most ? n : most);
    const size_t n_bytes_kept = (size_t)(example->n + 1) * sizeof *tokens;
    example->tokens = dpi_private_malloc(n_bytes_kept);
    if (example->tokens)
        memcpy(example->tokens, tokens, n_bytes_kept - sizeof *tokens);
    dpi_private_free(tokens);
    return example->tokens ? DPI_STATUS_OK : no_memory(err);
}

/* The instruction for each record of a unit; -1: its label is none of the public ones. */
static int32_t label_of(const dpi_records *records, const dpi_instructions *in, size_t unit) {
    const char *label;
    size_t n_bytes;
    if (!in->labels)
        return 0;
    dpi_records_unit_label(records, unit, &label, &n_bytes);
    for (int32_t i = 0; label && i < in->n; i++)
        if (strlen(in->labels[i]) == n_bytes && memcmp(in->labels[i], label, n_bytes) == 0)
            return i;
    return -1;
}

static void set_labels(dpi_examples *e) {
    const size_t n_units = dpi_records_unit_count(e->records);
    for (size_t unit = 0; unit < n_units; unit++) {
        const uint8_t *pays = e->format.pays;
        const int32_t label = pays && !pays[unit]
                                  ? -1
                                  : label_of(e->records, e->format.instructions, unit);
        for (size_t k = 0; k < e->n_records; k++) {
            const size_t i = dpi_records_of_unit(e->records, unit, k);
            if (i == SIZE_MAX)
                break;
            e->of[i].label = label;
        }
    }
}

static dpi_status read_all(dpi_examples *e, dpi_error *err) {
    const dpi_example_format *f = &e->format;
    set_labels(e);
    for (size_t i = 0; i < e->n_records; i++) {
        char *text;
        size_t n_bytes;
        if (f->cancel && f->cancel(f->cancel_user))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while records are read");
        if (e->of[i].label < 0)
            continue;
        DPI_TRY(dpi_records_read(e->records, i, &text, &n_bytes, err));
        const dpi_status status =
            text ? encode(f, text, n_bytes, &e->of[i], err) : DPI_STATUS_OK;
        dpi_private_free(text);
        DPI_TRY(status);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_examples_read(const dpi_records *records, const dpi_example_format *format,
                             dpi_examples *examples, dpi_error *err) {
    dpi_examples e = {.n_records = dpi_records_count(records),
                      .records = records,
                      .format = *format};
    e.of = dpi_calloc(e.n_records, sizeof *e.of);
    const dpi_status status = e.of ? read_all(&e, err) : no_memory(err);
    if (status == DPI_STATUS_OK)
        *examples = e;
    else
        dpi_examples_free(&e);
    return status;
}

void dpi_examples_count(const dpi_examples *e, int64_t *counts) {
    const size_t n_units = dpi_records_unit_count(e->records);
    memset(counts, 0, (size_t)e->format.instructions->n * sizeof *counts);
    for (size_t unit = 0; unit < n_units; unit++) {
        const uint8_t *pays = e->format.pays;
        const int32_t label =
            pays && !pays[unit] ? -1 : label_of(e->records, e->format.instructions, unit);
        if (label >= 0)
            counts[label]++;
    }
}

uint64_t dpi_examples_hash(const dpi_examples *e) {
    uint64_t hash = dpi_hash(DPI_HASH_INIT, &e->n_records, sizeof e->n_records);
    for (size_t i = 0; i < e->n_records; i++) {
        const dpi_example *x = &e->of[i];
        hash = dpi_hash(hash, &x->n, sizeof x->n);
        hash = dpi_hash(hash, &x->label, sizeof x->label);
        if (x->tokens)
            hash = dpi_hash(hash, x->tokens, (size_t)x->n * sizeof *x->tokens);
    }
    return hash;
}

void dpi_examples_free(dpi_examples *e) {
    for (size_t i = 0; e->of && i < e->n_records; i++)
        dpi_private_free(e->of[i].tokens);
    dpi_wipe_free(e->of, e->n_records * sizeof *e->of);
    *e = (dpi_examples){0};
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The text after instruction `label`, cut where the positions end. */
static void fill(const dpi_examples *e, const dpi_example *x, int32_t label, float weight,
                 const dpi_row_buffer *b, dpi_row *row) {
    const dpi_prompts *prompts = e->format.instructions->prompts[label];
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    (void)!dpi_prompts_info_get(prompts, &info, NULL); /* it knows its own size */
    const int32_t n_prompt = info.n_public, room = e->format.n_positions + 1 - n_prompt;
    const int32_t n_text = x->n < room ? x->n : room;
    const int32_t n = n_prompt + n_text - 1; /* of the last token only the loss is needed */
    b->begins[0] = 0;
    b->begins[1] = n;
    memcpy(b->tokens, dpi_prompts_public(prompts), (size_t)n_prompt * sizeof *b->tokens);
    memcpy(b->tokens + n_prompt, x->tokens, (size_t)(n_text - 1) * sizeof *b->tokens);
    memcpy(b->targets, b->tokens + 1, (size_t)(n - 1) * sizeof *b->targets);
    b->targets[n - 1] = x->tokens[n_text - 1];
    for (int32_t t = 0; t < n; t++)
        b->weights[t] = t + 1 < n_prompt && !e->format.loss_on_all ? 0 : weight;
    *row = (dpi_row){n, 1, b->begins, b->tokens, b->targets, b->weights};
}

/* Rows after other labels that each record of a label has. */
static int32_t wrong_count(const dpi_examples *e, int32_t label) {
    const dpi_instructions *in = e->format.instructions;
    const int32_t most = in->n_others ? in->n_others[label] : 0;
    return e->format.n_wrong < most ? e->format.n_wrong : most;
}

/* `which` of n_wrong different others of `label`, all sets of them equally likely: a shuffle of the
 * others by `bits`, of which the first n_wrong swaps are made (Fisher and Yates). */
static int32_t wrong_label(const dpi_examples *e, int32_t label, int32_t which, uint64_t bits) {
    const dpi_instructions *in = e->format.instructions;
    const int32_t n = in->n_others[label], n_wrong = wrong_count(e, label);
    int32_t from[DPI_WRONG_MAX], to[DPI_WRONG_MAX], found = 0;
    for (int32_t i = 0; i < n_wrong && i <= which; i++) {
        uint64_t x = 0;
        (void)!dpi_random_insecure(&bits, &x, sizeof x); /* the unit's own bits, made longer */
        int32_t j = i + (int32_t)((x >> 32) * (uint64_t)(n - i) >> 32), at_i = i;
        found = j;
        for (int32_t k = 0; k < i; k++) { /* what stands at j and at i now */
            found = from[k] == j ? to[k] : found;
            at_i = from[k] == i ? to[k] : at_i;
        }
        from[i] = j, to[i] = at_i;
    }
    return in->others[label][found];
}

static bool next_row(void *user, int64_t unit, int32_t k, uint64_t bits,
                     const dpi_row_buffer *buffer, dpi_row *row) {
    const dpi_examples *e = user;
    int32_t found = 0;
    for (int32_t j = 0; j < e->format.max_per_unit; j++) {
        const size_t i = dpi_records_of_unit(e->records, (size_t)unit, (size_t)j);
        if (i == SIZE_MAX)
            return false;
        const dpi_example *x = &e->of[i];
        if (!x->tokens || x->n < 1)
            continue;
        const int32_t n_wrong = wrong_count(e, x->label), which = k % (1 + n_wrong);
        if (found++ < k / (1 + n_wrong)) /* the label is that of the unit */
            continue;
        if (which == 0)
            fill(e, x, x->label, 1, buffer, row);
        else
            fill(e, x, wrong_label(e, x->label, which - 1, bits + (uint64_t)j),
                 -e->format.mismatch / (float)n_wrong, buffer, row);
        return true;
    }
    return false;
}

dpi_tuner_units dpi_examples_units(const dpi_examples *e) {
    return (dpi_tuner_units){.n = (int64_t)dpi_records_unit_count(e->records),
                             .row = next_row,
                             .user = (void *)(uintptr_t)e};
}
