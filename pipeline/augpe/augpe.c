/* augpe.c - see dpinfer/augpe.h: the object, and its phases one after the other. */
#include "pipeline/augpe/augpe.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"

/* ---- Opening --------------------------------------------------------------------------------- */

static dpi_status allocate(dpi_augpe *f, dpi_error *err) {
    const size_t n = (size_t)f->n_all, N = (size_t)f->options.n_texts, dim = (size_t)f->n_embd;
    f->candidates = dpi_calloc(n, sizeof *f->candidates);
    f->ahead = dpi_calloc(n * (size_t)f->options.n_lookahead, sizeof *f->ahead);
    f->chosen = dpi_calloc(N, sizeof *f->chosen);
    f->features = dpi_calloc(n * dim, sizeof *f->features);
    f->chosen_features = dpi_calloc(N * dim, sizeof *f->chosen_features);
    f->usable = dpi_calloc(n, sizeof *f->usable);
    f->chosen_usable = dpi_calloc(N, sizeof *f->chosen_usable);
    f->votes = dpi_private_malloc(n * sizeof *f->votes);
    return f->candidates && f->ahead && f->chosen && f->features && f->chosen_features &&
                   f->usable && f->chosen_usable && f->votes
               ? DPI_STATUS_OK
               : dpi_no_memory(err, "%d candidates", f->n_all);
}

/* Public bits have a source of their own: texts tell nothing of the noise. */
static dpi_status settle_bits(dpi_augpe *f, dpi_error *err) {
    f->bits = f->options.seed;
    f->public_bits = ~f->options.seed;
    return f->options.seeded ? DPI_STATUS_OK
                             : dpi_random_fill(NULL, NULL, &f->public_bits, sizeof f->public_bits,
                                               err);
}

static dpi_status open_all(dpi_augpe *f, dpi_error *err) {
    DPI_TRY(dpi_augpe_make_claim(f, err));
    f->n_all = f->options.n_texts * f->options.n_candidates;
    f->round = 1;
    DPI_TRY(settle_bits(f, err));
    DPI_TRY(dpi_writer_open(f, err));
    dpi_session_options o = f->options.session;
    o.n_seq = 1;
    DPI_TRY(dpi_session_create(f->options.model, &o, &f->look, err));
    return allocate(f, err);
}

dpi_status dpi_augpe_open(const dpi_augpe_options *options, dpi_augpe **augpe, dpi_error *err) {
    if (!augpe)
        return dpi_fail(err, DPI_STATUS_ARG, "augpe must not be NULL");
    DPI_COPY_STRUCT(dpi_augpe_options, o, options, err);
    dpi_augpe *f = dpi_calloc(1, sizeof *f);
    if (!f)
        return dpi_no_memory(err, "an evolution");
    f->options = o;
    const dpi_status status = open_all(f, err);
    if (status == DPI_STATUS_OK)
        *augpe = f;
    else
        dpi_augpe_free(f);
    return status;
}

static void free_texts(dpi_text *texts, size_t n) {
    for (size_t i = 0; texts && i < n; i++)
        free(texts[i].data);
    free(texts);
}

void dpi_augpe_free(dpi_augpe *f) {
    if (!f)
        return;
    const size_t n = (size_t)f->n_all;
    dpi_augpe_give_back(f);
    dpi_writer_close(f);
    dpi_session_free(f->look);
    free_texts(f->candidates, n);
    free_texts(f->ahead, n * (size_t)f->options.n_lookahead);
    free_texts(f->chosen, (size_t)f->options.n_texts);
    free(f->features), free(f->chosen_features), free(f->usable), free(f->chosen_usable);
    dpi_private_free(f->records);
    dpi_private_free(f->votes);
    dpi_private_free(f->pays);
    dpi_wipe_free(f, sizeof *f);
}

const dpi_claim *dpi_augpe_claim_of(const dpi_augpe *f) { return &f->claim; }

const dpi_wording *dpi_augpe_wording(const dpi_augpe *f) {
    return f->writer.rules ? dpi_word_rules_wording(f->writer.rules) : NULL;
}

void dpi_augpe_text(const dpi_augpe *f, int32_t index, const char **text, size_t *n_bytes) {
    const bool there = f->phase == DPI_PHASE_OVER && index >= 0 && index < f->options.n_texts;
    *text = !there ? NULL : f->chosen[index].data ? f->chosen[index].data : "";
    *n_bytes = there ? f->chosen[index].n_bytes : 0;
}

/* ---- Phases ---------------------------------------------------------------------------------- */

static void begin_writing(dpi_augpe *f) {
    f->phase = DPI_PHASE_WRITE;
    dpi_writer_begin(f, f->n_all - dpi_augpe_first_new(f));
}

static dpi_status write_some(dpi_augpe *f, dpi_augpe_event *event, dpi_error *err) {
    DPI_TRY(dpi_writer_advance(f, err));
    *event = (dpi_augpe_event){DPI_AUGPE_WRITING, f->round, f->writer.n_done, f->writer.n};
    if (f->writer.n_done < f->writer.n)
        return DPI_STATUS_OK;
    if (f->phase == DPI_PHASE_WRITE && f->options.n_lookahead > 0) {
        f->phase = DPI_PHASE_AHEAD;
        dpi_writer_begin(f, (f->n_all - dpi_augpe_first_new(f)) * f->options.n_lookahead);
        return DPI_STATUS_OK;
    }
    f->phase = DPI_PHASE_LOOK;
    f->n_looked = dpi_augpe_first_new(f);
    return DPI_STATUS_OK;
}

static dpi_status look_at_one(dpi_augpe *f, dpi_augpe_event *event, dpi_error *err) {
    DPI_TRY(dpi_augpe_look_at(f, f->n_looked, err));
    f->n_looked++;
    *event = (dpi_augpe_event){DPI_AUGPE_LOOKING, f->round, f->n_looked, f->n_all};
    if (f->n_looked == f->n_all)
        f->phase = f->records ? DPI_PHASE_CHOOSE : DPI_PHASE_READ;
    return DPI_STATUS_OK;
}

static dpi_status end_round(dpi_augpe *f, dpi_augpe_event *event, dpi_error *err) {
    DPI_TRY(dpi_augpe_choose(f, err));
    *event = (dpi_augpe_event){DPI_AUGPE_ROUND, f->round, f->round, f->options.n_rounds};
    if (f->round == f->options.n_rounds) {
        f->phase = DPI_PHASE_OVER;
        return DPI_STATUS_OK;
    }
    f->round++;
    begin_writing(f);
    return DPI_STATUS_OK;
}

static dpi_status advance(dpi_augpe *f, dpi_augpe_event *event, dpi_error *err) {
    if (dpi_augpe_is_cancelled(f))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled in round %d", f->round);
    switch (f->phase) {
    case DPI_PHASE_CHARGE:
        DPI_TRY(dpi_augpe_charge(f, err));
        *event = (dpi_augpe_event){DPI_AUGPE_CHARGED, f->round, 0, 0};
        begin_writing(f);
        return DPI_STATUS_OK;
    case DPI_PHASE_WRITE:
    case DPI_PHASE_AHEAD: return write_some(f, event, err);
    case DPI_PHASE_LOOK: return look_at_one(f, event, err);
    case DPI_PHASE_READ:
        DPI_TRY(dpi_augpe_read_records(f, err));
        *event = (dpi_augpe_event){DPI_AUGPE_RECORDS, f->round, 0, 0};
        f->phase = DPI_PHASE_CHOOSE;
        return DPI_STATUS_OK;
    case DPI_PHASE_CHOOSE: return end_round(f, event, err);
    default: *event = (dpi_augpe_event){DPI_AUGPE_NONE, f->round, 0, 0}; return DPI_STATUS_OK;
    }
}

dpi_status dpi_augpe_advance(dpi_augpe *f, dpi_augpe_event *event, dpi_error *err) {
    if (f->failed)
        return dpi_fail(err, DPI_STATUS_STATE, "the evolution has failed before: a new one begins "
                                               "with a charge of its own");
    const dpi_status status = advance(f, event, err);
    f->failed = status != DPI_STATUS_OK;
    if (f->failed)
        dpi_augpe_give_back(f);
    return status;
}
