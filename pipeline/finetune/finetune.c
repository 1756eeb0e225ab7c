/* finetune.c - see dpinfer/finetune.h: the object, its plan, its steps. */
#include "dp/mechanism/gradients.h"
#include "pipeline/finetune/finetune.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "dpinfer/process.h"
#include "dp/exact/poisson.h"
#include "engine/model.h"

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the training");
}

/* ---- Opening --------------------------------------------------------------------------------- */

static dpi_status make_instructions(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    const dpi_instruction_options of = {
        .text = o->instruction, .description = o->description, .chat = o->chat,
        .labels = o->labels, .meanings = o->label_meanings, .n_labels = o->n_labels,
        .attributes = o->attributes, .n_attributes = o->n_attributes,
        .n_positions = o->n_positions};
    DPI_TRY(dpi_instructions_make(o->model, &of, &f->instructions, err));
    const int32_t n = dpi_finetune_count_size(f);
    f->counts = n > 0 ? dpi_calloc((size_t)n, sizeof *f->counts) : NULL;
    return n > 0 && !f->counts ? no_memory(err) : DPI_STATUS_OK;
}

static dpi_tuner_options tuner_options(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    return (dpi_tuner_options){
        .model = o->model, .full = o->full, .rank = o->rank, .alpha = o->alpha,
        .targets = o->targets,
        .seed = o->seed, .n_positions = o->n_positions, .n_threads = o->n_threads,
        .share = (int64_t)(dpi_finetune_value(f, DPI_GRADIENTS_SAMPLING) * (double)DPI_POISSON_ONE),
        .expected = o->n_expected, .clip = o->clip,
        .sigma = dpi_finetune_value(f, DPI_GRADIENTS_SIGMA),
        .n_steps = o->n_steps, .lr = o->lr, .lr_floor = o->lr / 10, .n_warmup = o->n_warmup,
        .unbiased = o->unbiased, .least = .01, .cancel = o->cancel,
        .cancel_user = o->cancel_user, .ranks = o->ranks};
}

static dpi_status create_tuner(dpi_finetune *f, dpi_error *err) {
    dpi_tuner_options t = tuner_options(f);
    if (f->options.seeded) {
        t.random = dpi_random_insecure;
        t.random_user = &f->bits;
    }
    DPI_TRY(dpi_tuner_create(&t, &f->tuner, err));
    f->claim.parts[0].values[DPI_GRADIENTS_NUMBERS] = (double)dpi_tuner_lora(f->tuner)->n_params;
    return DPI_STATUS_OK;
}

static dpi_status open_all(dpi_finetune *f, dpi_error *err) {
    dpi_model_info info;
    DPI_TRY(dpi_finetune_settle(f, err));
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(f->options.model, &info, err));
    if (f->options.n_threads == 0)
        f->options.n_threads = dpi_processors();
    DPI_TRY(dpi_check_range("positions", f->options.n_positions, 2, info.n_ctx_train, err));
    DPI_TRY(make_instructions(f, err));
    return create_tuner(f, err);
}

dpi_status dpi_finetune_open(const dpi_finetune_options *options, dpi_finetune **finetune,
                             dpi_error *err) {
    if (!finetune)
        return dpi_fail(err, DPI_STATUS_ARG, "finetune must not be NULL");
    DPI_COPY_STRUCT(dpi_finetune_options, o, options, err);
    dpi_finetune *f = dpi_calloc(1, sizeof *f);
    if (!f)
        return no_memory(err);
    f->options = o;
    f->lock = -1;
    const dpi_status status = open_all(f, err);
    if (status == DPI_STATUS_OK)
        *finetune = f;
    else
        dpi_finetune_free(f);
    return status;
}

void dpi_finetune_free(dpi_finetune *f) {
    if (!f)
        return;
    dpi_examples_free(&f->examples);
    dpi_examples_free(&f->held_out);
    dpi_private_free(f->pays);
    dpi_tuner_free(f->tuner);
    dpi_instructions_free(&f->instructions);
    free(f->counts);
    if (f->lock >= 0)
        close(f->lock);
    free(f);
}

const dpi_claim *dpi_finetune_claim_of(const dpi_finetune *f) { return &f->claim; }

int32_t dpi_finetune_steps_unchanged(const dpi_finetune *f) {
    return (int32_t)dpi_tuner_steps_unchanged(f->tuner);
}

/* ---- The plan -------------------------------------------------------------------------------- */

DPI_STRUCT_DEFAULTS(dpi_finetune_plan, 0)

/* Beside what is counted: what the C library and OpenMP hold, and one part in GAPS, which the heap
 * loses between pieces. */
enum { OTHER_BYTES = 5 << 18, GAPS = 256 };

static int64_t rows_of_unit(const dpi_finetune_options *o) {
    return (int64_t)(dpi_records_has_units(o->records) ? o->max_per_unit : 1) *
           (1 + dpi_finetune_wrong_count(o));
}

dpi_status dpi_finetune_plan_of(const dpi_finetune_options *options, dpi_finetune_plan *plan,
                                dpi_error *err) {
    dpi_finetune f = {.lock = -1};
    dpi_model_info info;
    dpi_tuner_memory m;
    uint64_t now;
    DPI_COPY_STRUCT(dpi_finetune_options, o, options, err);
    DPI_CHECK_STRUCT(dpi_finetune_plan, plan, err);
    f.options = o;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_finetune_settle(&f, err));
    DPI_TRY(dpi_model_info_get(o.model, &info, err));
    DPI_TRY(dpi_check_range("positions", o.n_positions, 2, info.n_ctx_train, err));
    if (f.options.n_threads == 0)
        f.options.n_threads = dpi_processors();
    const dpi_tuner_options t = tuner_options(&f);
    dpi_process_memory(&now, NULL); /* what was taken to find sigma is not given back */
    DPI_TRY(dpi_tuner_memory_of(&t, &m, err));
    dpi_finetune_plan made = {0};
    made.program_bytes =
        (int64_t)(now + dpi_model_unread_bytes(o.model, info.n_vocab)) + m.blas_bytes +
        OTHER_BYTES + (m.state_bytes + m.step_bytes + f.options.n_threads * m.thread_bytes) / GAPS;
    made.state_bytes = m.state_bytes, made.step_bytes = m.step_bytes;
    made.thread_bytes = m.thread_bytes, made.n_threads = f.options.n_threads;
    made.record_bytes = o.n_units * rows_of_unit(&o) / (1 + dpi_finetune_wrong_count(&o)) *
                         (o.n_positions + 1) * (int64_t)sizeof(int32_t);
    made.memory_bytes = made.program_bytes + m.state_bytes + m.step_bytes +
                         made.n_threads * m.thread_bytes + made.record_bytes;
    dpi_struct_give(plan, &made, sizeof made);
    return DPI_STATUS_OK;
}

dpi_status dpi_finetune_measure(dpi_finetune *f, double *seconds, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    double gradient, rest;
    DPI_TRY(dpi_tuner_measure(f->tuner, &gradient, &rest, err));
    const double rows = ceil(o->n_expected) * (double)rows_of_unit(o);
    *seconds = gradient * ceil(rows / o->n_threads) + rest;
    return DPI_STATUS_OK;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static dpi_example_format format_of(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    return (dpi_example_format){
        .model = o->model, .instructions = &f->instructions, .n_positions = o->n_positions,
        .n_wrong = dpi_finetune_wrong_count(o), .mismatch = (float)o->mismatch,
        .loss_on_all = o->loss_on_all != 0,
        .max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 1,
        .cancel = o->cancel, .cancel_user = o->cancel_user};
}

/* Ranks wait here until rank 0 has paid: where it begins, and which units pay. */
static dpi_status follow_first(dpi_finetune *f, dpi_error *err) {
    const dpi_train_ranks *ranks = f->options.ranks;
    const size_t n_units = dpi_records_unit_count(f->options.records);
    uint64_t known[2] = {n_units, f->pays != NULL};
    if (!ranks)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_tuner_share(f->tuner, err));
    DPI_TRY(ranks->share(ranks->user, known, sizeof known, err));
    if (known[0] != n_units)
        return dpi_fail(err, DPI_STATUS_STATE, "this rank has other records than rank 0");
    if (!known[1])
        return DPI_STATUS_OK;
    if (!f->pays && !(f->pays = dpi_private_malloc(n_units + 1)))
        return no_memory(err);
    return ranks->share(ranks->user, f->pays, n_units, err);
}

/* Whether this rank has the options, the model and the records of rank 0. */
static dpi_status agree(dpi_finetune *f, dpi_error *err) {
    const dpi_train_ranks *ranks = f->options.ranks;
    const uint64_t own[2] = {dpi_finetune_hash_task(f), dpi_examples_hash(&f->examples)};
    uint64_t first[2] = {own[0], own[1]};
    DPI_TRY(ranks->share(ranks->user, first, sizeof first, err));
    if (first[0] == own[0] && first[1] == own[1])
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_STATE, "this rank has other %s than rank 0",
                    first[0] != own[0] ? "options, or another model," : "records");
}

dpi_status dpi_finetune_begin(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    dpi_example_format format = format_of(f);
    int32_t found;
    if (f->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the training has begun already");
    f->bits = o->seed & INT64_MAX;
    DPI_TRY(dpi_finetune_resume(f, &found, err));
    /* On the disk before a record is read; a charge that is not kept counts all the same. */
    DPI_TRY(found ? dpi_finetune_recall(f, err) : dpi_finetune_charge(f, err));
    f->begun = true;
    if (!found)
        DPI_TRY(dpi_finetune_keep(f, err));
    DPI_TRY(follow_first(f, err));
    format.pays = f->pays;
    DPI_TRY(dpi_examples_read(o->records, &format, &f->examples, err));
    if (o->ranks)
        DPI_TRY(agree(f, err));
    bool drawn;
    DPI_TRY(dpi_finetune_draw_counts(f, &drawn, err));
    return drawn ? dpi_finetune_keep(f, err) : DPI_STATUS_OK;
}

dpi_status dpi_finetune_step(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    if (!f->begun || !f->examples.of)
        return dpi_fail(err, DPI_STATUS_STATE, "the training has not begun");
    const dpi_tuner_units units = dpi_examples_units(&f->examples);
    const uint64_t bits = f->bits;
    const dpi_status status = dpi_tuner_step(f->tuner, &units, err);
    if (status != DPI_STATUS_OK) {
        f->bits = bits;
        return status;
    }
    f->bits &= INT64_MAX; /* as the checkpoint keeps it */
    const int32_t done = dpi_finetune_steps_done(f);
    return done - f->n_kept >= o->checkpoint_steps || done == o->n_steps ? dpi_finetune_keep(f, err)
                                                                        : DPI_STATUS_OK;
}

/* ---- Public loss ----------------------------------------------------------------------------- */

/* Each record as a unit of its own, without mismatch. */
static dpi_status read_held_out(dpi_finetune *f, dpi_error *err) {
    dpi_example_format format = format_of(f);
    format.n_wrong = 0, format.max_per_unit = 64;
    return dpi_examples_read(f->options.held_out, &format, &f->held_out, err);
}

dpi_status dpi_finetune_held_out(dpi_finetune *f, double *loss, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    dpi_row_buffer buffer;
    double sum = 0, n_tokens = 0;
    if (!o->held_out)
        return dpi_fail(err, DPI_STATUS_STATE, "the training has no held-out records");
    /* The loss is told, and tells of all steps: none of these may be drawn again. */
    if (f->begun && dpi_finetune_steps_done(f) > f->n_kept)
        DPI_TRY(dpi_finetune_keep(f, err));
    if (!f->held_out.of)
        DPI_TRY(read_held_out(f, err));
    DPI_TRY(dpi_row_buffer_create(o->n_positions, &buffer, err));
    const dpi_tuner_units units = dpi_examples_units(&f->held_out);
    dpi_row row;
    bool cancelled = false;
    for (int64_t i = 0; i < units.n && !cancelled; i++)
        for (int32_t k = 0; units.row(units.user, i, k, 0, &buffer, &row) && !cancelled; k++) {
            sum += dpi_tuner_loss(f->tuner, &row);
            for (int32_t t = 0; t < row.n; t++)
                n_tokens += (double)row.weights[t];
            cancelled = o->cancel && o->cancel(o->cancel_user);
        }
    dpi_row_buffer_free(&buffer);
    if (cancelled)
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while public records are read");
    if (!(n_tokens > 0))
        return dpi_fail(err, DPI_STATUS_NUMERIC, "no held-out record has a token");
    *loss = sum / n_tokens;
    return DPI_STATUS_OK;
}
