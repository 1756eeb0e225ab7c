/* augpe.h - the state of a private evolution, and its parts. Internal.
 *
 * Public: candidates, their features, noisy votes. PRIVATE: features of records, which sequence of
 * `look` held one, votes before their noise, who pays. */
#ifndef DPI_PIPELINE_AUGPE_H
#define DPI_PIPELINE_AUGPE_H

#include <stdbool.h>

#include "base/text.h"
#include "dpinfer/augpe.h"
#include "dpinfer/generation.h"

enum { DPI_WRITER_SLOTS_MAX = 256 };

/* A place for one text after the other. */
typedef struct dpi_writer_slot {
    dpi_generation *generation; /* NULL: free */
    dpi_sampler *sampler;
    uint64_t bits;      /* of the text: public */
    int32_t *tokens;    /* its prompt, private memory; NULL: that of prompt_seq */
    int32_t n_begun;    /* tokens at the end of its prompt that the text begins with */
    int32_t prompt_seq, most; /* most tokens that are drawn */
    dpi_text *to;
} dpi_writer_slot;

/* Texts that are being written: n jobs, numbered from 0. */
typedef struct dpi_writer {
    dpi_mask *mask;       /* of the grammar; NULL: none, or elsewhere */
    dpi_word_rules *rules; /* of the wording; NULL: elsewhere */
    dpi_session *session; /* sequences of the slots, then of the public prompt; NULL: elsewhere */
    dpi_writer_slot slots[DPI_WRITER_SLOTS_MAX];
    int32_t n_slots, n, n_begun, n_done;
} dpi_writer;

typedef enum dpi_augpe_phase {
    DPI_PHASE_CHARGE,
    DPI_PHASE_WRITE,
    DPI_PHASE_AHEAD, /* variations of candidates that are only looked at */
    DPI_PHASE_LOOK,
    DPI_PHASE_READ,
    DPI_PHASE_CHOOSE,
    DPI_PHASE_OVER
} dpi_augpe_phase;

struct dpi_augpe {
    dpi_augpe_options options; /* n_tokens and session.n_ctx settled */
    dpi_claim claim;
    dpi_prompts *prompts, *variation; /* variation NULL: CONTINUE, or elsewhere */
    dpi_writer writer;
    dpi_session *look;
    int32_t phase, round, n_embd;
    int32_t n_all, n_looked; /* candidates of a round */
    dpi_text *candidates;    /* [n_all] */
    dpi_text *ahead;         /* [n_all n_lookahead] */
    dpi_text *chosen;        /* [n_texts] */
    float *features;         /* [n_all, n_embd] */
    float *chosen_features;  /* [n_texts, n_embd] */
    uint8_t *usable, *chosen_usable; /* [n_all], [n_texts]: there are features */
    float *records;      /* [n_records, n_embd] PRIVATE; an entry that is NaN: a null record */
    size_t n_records;
    int64_t *votes;      /* [n_all] PRIVATE until they have noise */
    uint8_t *pays;       /* [units] with scope UNIT: 1: the unit has paid. PRIVATE */
    int64_t charge;      /* of the ledger; 0: none */
    uint64_t bits;        /* with a seed: the state of the noise's random bits */
    uint64_t public_bits; /* of texts, blanks and draws of candidates: no secret */
    bool failed;
};

/* ---- candidate_jobs.c ------------------------------------------------------------------------ */

bool dpi_augpe_is_cancelled(const dpi_augpe *f);
/* Public: the next 64 bits; uniform in [0, 1). */
uint64_t dpi_augpe_public_bits(dpi_augpe *f);
double dpi_augpe_uniform(dpi_augpe *f);
/* The first candidate of a round that is written in it. */
int32_t dpi_augpe_first_new(const dpi_augpe *f);
/* What job i of the present phase writes: from (NULL: the public prompt) to. */
void dpi_augpe_job(dpi_augpe *f, int32_t i, const dpi_text **from, dpi_text **to);
/* Empties a text, which keeps its memory. */
void dpi_augpe_empty(dpi_text *text);

/* ---- write.c --------------------------------------------------------------------------------- */

/* Makes the prompts, and the session and samplers of the writer. */
DPI_MUST_CHECK dpi_status dpi_writer_open(dpi_augpe *f, dpi_error *err);
void dpi_writer_close(dpi_augpe *f);
/* n jobs of a new phase. */
void dpi_writer_begin(dpi_augpe *f, int32_t n);
/* A token of each text that is open, or, elsewhere, some whole texts. */
DPI_MUST_CHECK dpi_status dpi_writer_advance(dpi_augpe *f, dpi_error *err);

/* ---- look.c ---------------------------------------------------------------------------------- */

/* The features of a text [n_embd]: the last hidden state after the private prompt around it,
 * computed alone. NaN in each entry: it has none. What it returns and does depends on the text and
 * public data alone. */
DPI_MUST_CHECK dpi_status dpi_augpe_look(dpi_augpe *f, const char *text, size_t n_bytes,
                                         float *features, dpi_error *err);
/* Of candidate i. */
DPI_MUST_CHECK dpi_status dpi_augpe_look_at(dpi_augpe *f, int32_t i, dpi_error *err);
/* Of all records that take part. */
DPI_MUST_CHECK dpi_status dpi_augpe_read_records(dpi_augpe *f, dpi_error *err);

/* ---- choose.c -------------------------------------------------------------------------------- */

/* The votes of all units, without noise: f->votes. For audits. */
DPI_MUST_CHECK dpi_status dpi_augpe_count(dpi_augpe *f, dpi_error *err);
/* The same, noise, and the candidates that stay. */
DPI_MUST_CHECK dpi_status dpi_augpe_choose(dpi_augpe *f, dpi_error *err);

/* ---- evolution_settle.c ---------------------------------------------------------------------- */

/* Fills the claim of the options. */
DPI_MUST_CHECK dpi_status dpi_augpe_make_claim(dpi_augpe *f, dpi_error *err);
/* Charges the ledger, if there is one. */
DPI_MUST_CHECK dpi_status dpi_augpe_charge(dpi_augpe *f, dpi_error *err);
/* Before a record is read: the charge, which is of nothing then. Else nothing. */
void dpi_augpe_give_back(dpi_augpe *f);

#endif
