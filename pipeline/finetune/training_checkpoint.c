/* training_checkpoint.c - what is kept of a training between two runs of the program, and whose it
 * is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/mechanism/gradients.h"
#include "engine/model.h"
#include "pipeline/finetune/finetune.h"
#include "train/checkpoint.h"

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the checkpoint");
}

int32_t dpi_finetune_steps_done(const dpi_finetune *f) {
    return (int32_t)dpi_tuner_steps_done(f->tuner);
}

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

uint64_t dpi_finetune_hash_task(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    const dpi_claim *c = &f->claim;
    const double reals[] = {c->delta, dpi_finetune_value(f, DPI_GRADIENTS_SIGMA),
                            dpi_finetune_value(f, DPI_GRADIENTS_SAMPLING), o->n_expected,
                            o->clip, o->full ? 0 : o->alpha, o->lr, o->mismatch};
    const int64_t integers[] = {c->n_units, o->n_steps, c->max_per_unit, o->full ? 0 : o->rank,
                                o->full ? 0 : o->targets, o->n_warmup, o->unbiased, o->n_positions,
                                o->seeded, c->record_kind, dpi_finetune_histogram_scale(c),
                                (int64_t)o->seed, o->loss_on_all,
                                dpi_finetune_wrong_count(o), o->full,
                                (int64_t)dpi_model_mark(o->model)};
    uint64_t hash = dpi_hash(DPI_HASH_INIT, reals, sizeof reals);
    hash = dpi_hash(hash, integers, sizeof integers);
    hash = hash_instructions(&f->instructions, hash);
    return dpi_hash(hash, c->model_name, strlen(c->model_name));
}

/* Of a checkpoint. */
static uint64_t configuration(const dpi_finetune *f) {
    const dpi_finetune_options *o = &f->options;
    const uint64_t hash = dpi_finetune_hash_task(f);
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

dpi_status dpi_finetune_resume(dpi_finetune *f, int32_t *found, dpi_error *err) {
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
