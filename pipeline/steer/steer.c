/* steer.c - see dpinfer/steer.h: the object, public texts, the release. */
#include "pipeline/steer/steer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/drawing.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/payers.h"

/* ---- Opening --------------------------------------------------------------------------------- */

static dpi_status open_all(dpi_steer *s, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    DPI_TRY(dpi_steer_settle(s, err));
    const char **names = dpi_calloc((size_t)s->n_sets, sizeof *names);
    if (!names)
        return dpi_no_memory(err, "the labels");
    for (int32_t i = 0; i < s->labels.n; i++)
        names[i] = s->labels.names.at[i].data;
    const dpi_instruction_options of = {
        .text = o->instruction, .description = o->description, .chat = o->chat,
        .labels = names, .meanings = o->label_meanings, .n_labels = s->labels.n,
        .n_positions = o->n_positions};
    const dpi_status status = dpi_instructions_make(o->model, &of, &s->instructions, err);
    free(names);
    return status;
}

dpi_status dpi_steer_open(const dpi_steer_options *options, dpi_steer **steer, dpi_error *err) {
    if (!steer)
        return dpi_fail(err, DPI_STATUS_ARG, "steer must not be NULL");
    DPI_COPY_STRUCT(dpi_steer_options, o, options, err);
    dpi_steer *s = dpi_calloc(1, sizeof *s);
    if (!s)
        return dpi_no_memory(err, "steering vectors");
    s->options = o;
    const dpi_status status = open_all(s, err);
    if (status == DPI_STATUS_OK)
        *steer = s;
    else
        dpi_steer_free(s);
    return status;
}

void dpi_steer_free(dpi_steer *s) {
    if (!s)
        return;
    dpi_public_states_free(&s->at);
    dpi_labels_free(&s->labels);
    dpi_instructions_free(&s->instructions);
    dpi_private_free(s->pays);
    free(s->layers);
    dpi_private_free(s->sum);
    free(s->vectors);
    free(s->key_words);
    free(s->words), free(s->vocabulary), free(s->said);
    free(s);
}

const dpi_claim *dpi_steer_claim(const dpi_steer *s) { return &s->claim; }

int32_t dpi_steer_drowned(const dpi_steer *s) {
    int32_t n = 0;
    for (int32_t label = 0; label < s->n_sets && s->sum; label++) {
        bool steers = false;
        for (int64_t i = 0; i < s->n_states; i++)
            steers |= s->vectors[label * s->n_states + i] != 0;
        n += !steers;
    }
    return n;
}

const char *dpi_steer_words(const dpi_steer *s) { return s->words; }

const char *dpi_steer_label(const dpi_steer *s, int32_t i) {
    return i >= 0 && i < s->labels.n ? s->labels.names.at[i].data : NULL;
}

/* ---- Public texts ---------------------------------------------------------------------------- */

static dpi_status open_drawing(const dpi_steer *s, dpi_drawing **drawing, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    dpi_drawing_options d;
    dpi_drawing_options_init(&d);
    d.model = o->model, d.prompts = s->instructions.prompts, d.n_prompts = s->n_sets;
    d.n_texts = o->n_public * s->n_sets, d.rules = s->instructions.rules;
    const int32_t room = o->n_positions - s->instructions.longest;
    d.method.n_tokens = o->n_public_tokens < room ? o->n_public_tokens : room;
    d.session.n_threads = o->n_threads, d.session.isa = o->isa;
    d.session.cancel = o->cancel, d.session.cancel_user = o->cancel_user;
    d.seeded = o->seeded, d.seed = o->seed;
    return dpi_drawing_open(&d, drawing, err);
}

/* One line of a .jsonl; label NULL: there are none. */
static dpi_status add_line(dpi_text *lines, const dpi_drawn_text *text, const char *label,
                           dpi_error *err) {
    json_t *line = json_pack("{s:s%, s:s*}", "text", text->data, text->n_bytes, "label", label);
    size_t n_bytes;
    char *json = line ? dpi_json_text(line, JSON_COMPACT, &n_bytes) : NULL;
    if (json)
        dpi_text_add(lines, "%s\n", json);
    else /* bytes that are no UTF-8: a text that is null */
        dpi_text_add(lines, "{}\n");
    json_decref(line);
    free(json);
    return lines->failed ? dpi_no_memory(err, "public texts") : DPI_STATUS_OK;
}

static dpi_status draw_lines(const dpi_steer *s, dpi_text *lines, dpi_error *err) {
    dpi_drawing *drawing;
    dpi_drawn_text text = {0};
    DPI_TRY(open_drawing(s, &drawing, err));
    dpi_status status = DPI_STATUS_OK;
    while (status == DPI_STATUS_OK && text.index >= 0) {
        status = dpi_drawing_next(drawing, &text, err);
        if (status == DPI_STATUS_OK && text.index >= 0)
            status = add_line(lines, &text, dpi_steer_label(s, text.prompt), err);
    }
    dpi_drawing_free(drawing);
    return status;
}

/* What the model writes by itself, as records. */
static dpi_status draw_texts(const dpi_steer *s, dpi_records **texts, dpi_error *err) {
    dpi_text lines = {0};
    dpi_records_options o;
    dpi_records_options_init(&o);
    o.label_field = s->labels.n > 0 ? "label" : NULL;
    dpi_status status = draw_lines(s, &lines, err);
    if (status == DPI_STATUS_OK)
        status =
            dpi_records_open_buffer(lines.data, lines.n_bytes, DPI_RECORD_LINE, &o, texts, err);
    free(lines.data);
    return status;
}

/* Of records the sum; sum NULL: of public texts where their states lie. */
static dpi_status read_all(dpi_steer *s, const dpi_records *records, int64_t *sum,
                           dpi_error *err) {
    const dpi_example_format format = dpi_steer_format(s);
    dpi_examples examples;
    dpi_reader reader;
    DPI_TRY(dpi_examples_read(records, &format, &examples, err));
    dpi_status status = dpi_reader_open(s, &reader, err);
    if (status == DPI_STATUS_OK) {
        status = sum ? dpi_directions_add(&reader, &examples, sum, err)
                     : dpi_public_states_find(&reader, &examples, &s->at, err);
        dpi_reader_close(&reader);
    }
    dpi_examples_free(&examples);
    return status;
}

dpi_status dpi_steer_prepare(dpi_steer *s, dpi_error *err) {
    dpi_records *drawn = NULL;
    dpi_status status = DPI_STATUS_OK;
    if (s->prepared)
        return dpi_fail(err, DPI_STATUS_STATE, "public texts were read already");
    if (!s->options.public_texts)
        status = draw_texts(s, &drawn, err);
    if (status == DPI_STATUS_OK)
        status = read_all(s, drawn ? drawn : s->options.public_texts, NULL, err);
    if (status == DPI_STATUS_OK && s->options.n_words > 0)
        status = dpi_key_words_find(s, drawn ? drawn : s->options.public_texts, err);
    dpi_records_close(drawn);
    s->prepared = status == DPI_STATUS_OK;
    return status;
}

/* ---- The release ----------------------------------------------------------------------------- */

static dpi_status add_noise(const dpi_steer *s, int64_t *sum, dpi_error *err) {
    const double sigma = s->claim.parts[0].values[DPI_STEERING_SIGMA];
    uint64_t bits = s->options.seed;
    return sigma > 0 ? dpi_gradient_noise(sigma, s->n,
                                          s->options.seeded ? dpi_random_insecure : NULL, &bits,
                                          sum, err)
                     : DPI_STATUS_OK;
}

/* The sum is private memory until it has its noise. */
static dpi_status release(dpi_steer *s, dpi_error *err) {
    const size_t n_bytes = (size_t)s->n * sizeof *s->sum;
    int64_t *sum = dpi_private_malloc(n_bytes);
    s->vectors = dpi_calloc((size_t)(s->n_sets * s->n_states), sizeof *s->vectors);
    if (!sum || !s->vectors) {
        dpi_private_free(sum);
        return dpi_no_memory(err, "steering vectors");
    }
    memset(sum, 0, n_bytes);
    dpi_status status = read_all(s, s->options.records, sum, err);
    if (status == DPI_STATUS_OK)
        status = add_noise(s, sum, err);
    if (status == DPI_STATUS_OK && s->options.n_words > 0)
        status = dpi_key_words_choose(s, sum, err);
    if (status == DPI_STATUS_OK && s->options.n_words > 0)
        status = dpi_key_words_keep(s, sum, err);
    if (status != DPI_STATUS_OK) {
        dpi_private_free(sum);
        return status;
    }
    dpi_directions_make(s, sum, s->vectors);
    s->sum = sum;
    return DPI_STATUS_OK;
}

dpi_status dpi_steer_release(dpi_steer *s, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset};
    if (!s->prepared || s->released)
        return dpi_fail(err, DPI_STATUS_STATE,
                        s->released ? "the vectors were released already"
                                    : "public texts were not read");
    /* On the disk before a record is read; what fails after it stays charged. */
    DPI_TRY(dpi_payers_charge_claim(&payers, &s->claim, &s->pays, &s->charge, err));
    s->released = true;
    return release(s, err);
}
