/* finetune.c - see dpinfer/finetune.h: the object, its checkpoint, its steps. */
#include "dp/mechanism/gradients.h"
#include "pipeline/finetune/finetune.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "dpinfer/process.h"
#include "dp/exact/poisson.h"
#include "engine/model.h"
#include "train/checkpoint.h"

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

/* Other prompts than the record's own, of which its text is made less likely. */
static int32_t wrong_count(const dpi_finetune_options *o) {
    const int32_t others = o->n_labels > 0 ? o->n_labels - 1 : 0;
    return !(o->mismatch > 0) ? 0 : o->n_wrong < others ? o->n_wrong : others;
}

/* Of the gradients, by its place in dp/mechanism/gradients.h. */
static double value_of(const dpi_finetune *f, int value) {
    return f->claim.parts[0].values[value];
}

static dpi_tuner_options tuner_options(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    return (dpi_tuner_options){
        .model = o->model, .full = o->full, .rank = o->rank, .alpha = o->alpha,
        .targets = o->targets,
        .seed = o->seed, .n_positions = o->n_positions, .n_threads = o->n_threads,
        .share = (int64_t)(value_of(f, DPI_GRADIENTS_SAMPLING) * (double)DPI_POISSON_ONE),
        .expected = o->n_expected, .clip = o->clip,
        .sigma = value_of(f, DPI_GRADIENTS_SIGMA),
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

int32_t dpi_finetune_steps_done(const dpi_finetune *f) {
    return (int32_t)dpi_tuner_steps_done(f->tuner);
}

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
           (1 + wrong_count(o));
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
    made.record_bytes = o.n_units * rows_of_unit(&o) / (1 + wrong_count(&o)) *
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

/* ---- The checkpoint -------------------------------------------------------------------------- */

static uint64_t hash_instructions(const dpi_instructions *in, uint64_t hash) {
    for (int32_t i = 0; i < in->n; i++) {
        dpi_prompts_info info;
        dpi_prompts_info_init(&info);
        if (dpi_prompts_info_get(in->prompts[i], &info, NULL) == DPI_STATUS_OK)
            hash = dpi_hash(hash, dpi_prompts_public(in->prompts[i]),
                            (size_t)info.n_public * sizeof(int32_t));
        if (in->labels)
            hash = dpi_hash(hash, in->labels[i], strlen(in->labels[i]) + 1);
    }
    return in->attributes ? dpi_hash(hash, in->attributes, strlen(in->attributes)) : hash;
}

/* Everything public that the steps depend on; of the model its name and its norms. */
static uint64_t hash_task(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    const dpi_claim *c = &f->claim;
    const double reals[] = {c->delta, value_of(f, DPI_GRADIENTS_SIGMA),
                            value_of(f, DPI_GRADIENTS_SAMPLING), o->n_expected,
                            o->clip, o->full ? 0 : o->alpha, o->lr, o->mismatch};
    const int64_t integers[] = {c->n_units, o->n_steps, c->max_per_unit, o->full ? 0 : o->rank,
                                o->full ? 0 : o->targets, o->n_warmup, o->unbiased, o->n_positions,
                                o->seeded, c->record_kind, dpi_finetune_histogram_scale(c),
                                (int64_t)o->seed, o->loss_on_all,
                                wrong_count(o), o->full, (int64_t)dpi_model_mark(o->model)};
    uint64_t hash = dpi_hash(DPI_HASH_INIT, reals, sizeof reals);
    hash = dpi_hash(hash, integers, sizeof integers);
    hash = hash_instructions(&f->instructions, hash);
    return dpi_hash(hash, c->model_name, strlen(c->model_name));
}

/* Of a checkpoint. */
static uint64_t configuration(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    const uint64_t hash = hash_task(f);
    return o->ledger ? dpi_hash(hash, o->dataset, strlen(o->dataset)) : hash;
}

/* In the checkpoint's words: `epoch` is the charge, `row` what is left of a seed's bits. */
static dpi_checkpoint state_of(const dpi_finetune *f) {
    return (dpi_checkpoint){.config_hash = configuration(f),
                            .n_params = dpi_tuner_lora(f->tuner)->n_params +
                                        dpi_finetune_count_size(f),
                            .step = dpi_finetune_steps_done(f),
                            .epoch = f->charge,
                            .row = (int64_t)(f->bits & INT64_MAX)};
}

/* With a histogram its counts stand behind the adapters, as the bits that they are. */
static dpi_status write_checkpoint(const dpi_finetune *f, const float *const arrays[3],
                                   dpi_error *err) {
    const dpi_checkpoint state = state_of(f);
    const size_t n = (size_t)dpi_tuner_lora(f->tuner)->n_params, n_all = (size_t)state.n_params;
    if (!f->counts)
        return dpi_checkpoint_write(f->options.checkpoint, &state, arrays, err);
    float *all = dpi_calloc(3 * n_all, sizeof *all);
    if (!all)
        return no_memory(err);
    for (size_t i = 0; i < 3; i++)
        memcpy(all + i * n_all, arrays[i], n * sizeof *all);
    memcpy(all + n, f->counts, (n_all - n) * sizeof *all);
    const float *const longer[] = {all, all + n_all, all + 2 * n_all};
    const dpi_status status = dpi_checkpoint_write(f->options.checkpoint, &state, longer, err);
    free(all);
    return status;
}

dpi_status dpi_finetune_keep(dpi_finetune *f, dpi_error *err) {
    const float *arrays[3];
    int64_t n_steps;
    if (!f->options.checkpoint || !f->begun)
        return DPI_STATUS_OK;
    dpi_tuner_state(f->tuner, arrays, &n_steps);
    DPI_TRY(write_checkpoint(f, arrays, err));
    f->n_kept = (int32_t)n_steps;
    return DPI_STATUS_OK;
}

/* A lock of its own file: the checkpoint is replaced as a whole. */
static dpi_status lock_checkpoint(dpi_finetune *f, dpi_error *err) {
    const char *path = f->options.checkpoint;
    const size_t n = strlen(path) + sizeof ".lock";
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* before a lock is made beside a device */
        return dpi_fail(err, DPI_STATUS_IO, "cannot read %s: it is not a regular file", path);
    char *name = malloc(n);
    if (!name)
        return no_memory(err);
    snprintf(name, n, "%s.lock", path);
    f->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int reason = errno;
    free(name);
    if (f->lock < 0)
        return dpi_fail(err, dpi_status_of_errno(reason), "cannot make %s.lock: %s", path,
                        dpi_reason(reason));
    if (flock(f->lock, LOCK_EX | LOCK_NB) == 0)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_STATE, "another process trains with the checkpoint %s", path);
}

/* *found: the training goes on where the file ends. */
static dpi_status resume(dpi_finetune *f, int32_t *found, dpi_error *err) {
    dpi_checkpoint state = state_of(f);
    const size_t n = (size_t)state.n_params, n_counts = (size_t)dpi_finetune_count_size(f);
    *found = 0;
    if (!f->options.checkpoint)
        return DPI_STATUS_OK;
    DPI_TRY(lock_checkpoint(f, err));
    float *all = dpi_calloc(3 * n, sizeof *all);
    if (!all)
        return no_memory(err);
    float *const arrays[] = {all, all + n, all + 2 * n};
    dpi_status status =
        dpi_checkpoint_read(f->options.checkpoint, &state, arrays, "threads", found, err);
    if (status == DPI_STATUS_OK && *found) {
        status = dpi_tuner_restore(f->tuner, (const float *const *)arrays, state.step, err);
        f->charge = state.epoch;
        f->bits = (uint64_t)state.row;
        f->n_kept = (int32_t)state.step;
        if (f->counts)
            memcpy(f->counts, all + n - n_counts, n_counts * sizeof *all);
    }
    free(all);
    return status;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static dpi_example_format format_of(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    return (dpi_example_format){
        .model = o->model, .instructions = &f->instructions, .n_positions = o->n_positions,
        .n_wrong = wrong_count(o), .mismatch = (float)o->mismatch,
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
    const uint64_t own[2] = {hash_task(f), dpi_examples_hash(&f->examples)};
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
    DPI_TRY(resume(f, &found, err));
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
    return dpi_finetune_draw_counts(f, err);
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
