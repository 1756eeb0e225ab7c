/* augpe.h - texts by private evolution: a model writes candidates from public prompts, private
 * records vote for those that they are nearest to, the votes get noise, and the model writes
 * variations of the best. Part of libdpinfer_full.
 *
 *     dpi_augpe_options_init(&options);              model, records, n_texts, epsilon or rho, ...
 *     dpi_augpe_open(&options, &augpe, &err);        settles every number, reads no record
 *     do
 *         dpi_augpe_advance(augpe, &event, &err);    charges the ledger first
 *     while (event.type != DPI_AUGPE_NONE);
 *     dpi_augpe_text(augpe, i, &text, &n_bytes);     i below n_texts
 *
 * All that is released of records is one noisy histogram of votes for each round: the candidates
 * and the texts are written from public prompts and from earlier candidates. So the number of texts
 * costs nothing, and candidates may be sent elsewhere. A unit votes with integers of norm one, and
 * each candidate gets exact discrete Gaussian noise (dp/PRIVACY.md section 25). Source: Xie et al.
 * 2024, "Differentially Private Synthetic Data via Foundation Model APIs 2: Text", Algorithms 1 and
 * 2, with noise and votes in integers.
 *
 * A run that ends early cannot go on: the next one begins with another charge and fresh noise.
 * Where it ended before a record was read, as with a server that cannot be reached, its charge is
 * given back (but for scope UNIT), and claim.ledger is empty again.
 *
 * Errors say nothing of what is in a record. Threads: an object belongs to one thread at a time. */
#ifndef DPINFER_AUGPE_H
#define DPINFER_AUGPE_H

#include "dpinfer/grammar.h"
#include "dpinfer/ledger.h"
#include "dpinfer/prompts.h"
#include "dpinfer/records.h"
#include "dpinfer/report.h"
#include "dpinfer/session.h"
#include "dpinfer/wording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which candidates stay after a round. */
typedef enum dpi_augpe_selection {
    DPI_AUGPE_RANK = 0,  /* those with the most votes */
    DPI_AUGPE_SAMPLE = 1 /* draws in proportion to votes above the threshold, with replacement */
} dpi_augpe_selection;

/* How a candidate is varied. */
typedef enum dpi_augpe_variation {
    DPI_AUGPE_ANOTHER = 0, /* another text like it: the private prompt around it */
    DPI_AUGPE_BLANKS = 1,  /* words become blanks, which the model is told to fill in */
    DPI_AUGPE_CONTINUE = 2 /* its beginning stays, and the model goes on from there */
} dpi_augpe_variation;

enum { DPI_AUGPE_CANDIDATES_MAX = 1 << 20 };

/* Writes a text from each of n public prompts, in place of the local model: texts[i] is a string
 * from malloc, which the library frees, also after a failure; it begins as NULL, and one that stays
 * so is an empty text. A status that is not OK ends the run. */
typedef dpi_status (*dpi_augpe_write_fn)(void *user, const dpi_bytes *prompts, int32_t n,
                                         char **texts, dpi_error *err);

typedef struct dpi_augpe_options {
    size_t struct_size;
    const dpi_model *model;     /* writes, and sees how near texts are */
    const dpi_records *records; /* both must outlive the object */
    /* The evolution. */
    int32_t n_texts;      /* N, 1.. */
    int32_t n_rounds;     /* R, 1..1000; default 5 */
    int32_t n_candidates; /* L, 1..64: N L candidates a round; default 4. 1 only with SAMPLE */
    int32_t n_lookahead;  /* K, 0..16: a candidate stands where the mean of K variations of it is;
                             default 0: where it is itself */
    int32_t selection;    /* a dpi_augpe_selection; default RANK */
    double threshold;     /* H, 0..1e9: fewer votes count as none; default 0 */
    int32_t variation;    /* a dpi_augpe_variation; default ANOTHER */
    double change;        /* (0, 1]: BLANKS: the share of words that become blanks; CONTINUE: that
                             of the text that is written anew, about; default .5 */
    /* The model's texts. */
    int32_t n_tokens; /* T; 0 (default): dpi_tokens_default() of the context */
    int32_t top_k;    /* likeliest tokens that are drawn from; 0: all; default 100 */
    double tau;       /* temperature, 0.01..100; default 1. Not used where `write` is given */
    dpi_prompt_options prompts; /* the public prompt writes the first candidates; the private one
                                   is around each text whose features are compared. Not a query */
    dpi_bytes variation_prompt; /* PUBLIC, with {reference} once, for the candidate: ANOTHER and
                                   BLANKS; none: a default. Outlives the object */
    dpi_session_options session; /* n_seq is the object's; n_ctx 0: the model's, 4096 at most */
    int32_t n_parallel;          /* texts at a time, 1..256; default 32 */
    dpi_augpe_write_fn write;    /* NULL (default): the model */
    void *write_user;
    const dpi_grammar *grammar;  /* PUBLIC: candidates are texts of it, or beginnings of such where
                                    T tokens end before they do. The local model's alone; must
                                    outlive the object. NULL (default): any text */
    const dpi_wording *wording;  /* PUBLIC: how candidates are worded, copied; without keep_answer.
                                    Where it has no answer, a description makes it that of a list
                                    (dpi_wording_choose). The local model's alone. NULL (default):
                                    nothing is set */
    /* The budget. */
    double rho;     /* of all rounds, in zCDP: this or epsilon */
    double epsilon; /* of all rounds, at delta: this or rho */
    double delta;   /* below 1 / units; default 1e-6 */
    int32_t adjacency; /* REPLACE_BY_NULL (default): how many units there are is public; or
                          ADD_REMOVE */
    int64_t n_units;   /* ADD_REMOVE: about how many units there are, a public number */
    int32_t max_per_unit; /* records of a unit that vote, its first ones, 1..64; default 4 */
    int32_t seeded;       /* 1: random bits follow from seed, NOT PRIVATE */
    uint64_t seed; /* with seeded: whoever knows it can undo the mechanism */
    dpi_ledger *ledger;  /* NULL: none */
    const char *dataset; /* of the ledger; with scope UNIT records need IDs */
} dpi_augpe_options;

DPI_API void dpi_augpe_options_init_size(dpi_augpe_options *options, size_t size);
#define dpi_augpe_options_init(o) dpi_augpe_options_init_size((o), sizeof *(o))

/* "rank", "sample"; "another", "blanks", "continue"; NULL for another value. Static. */
DPI_API const char *dpi_augpe_selection_name(int32_t selection);
DPI_API const char *dpi_augpe_variation_name(int32_t variation);

typedef enum dpi_augpe_event_type {
    DPI_AUGPE_CHARGED = 0,  /* the ledger is charged, if there is one */
    DPI_AUGPE_WRITING = 1,  /* n_done of n texts of the round are written */
    DPI_AUGPE_LOOKING = 2,  /* n_done of n candidates have features */
    DPI_AUGPE_RECORDS = 3,  /* the records have features */
    DPI_AUGPE_ROUND = 4,    /* the round is over: its candidates are chosen */
    DPI_AUGPE_NONE = 5      /* all rounds are over */
} dpi_augpe_event_type;

/* Public, all of it. */
typedef struct dpi_augpe_event {
    int32_t type;  /* a dpi_augpe_event_type */
    int32_t round; /* from 1 */
    int32_t n_done, n;
} dpi_augpe_event;

typedef struct dpi_augpe dpi_augpe;

/* Settles the noise and makes prompts and sessions; nothing is written or read. Errors: ARG (by the
 * option's name, what was found and what is allowed), UNSUPPORTED, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_augpe_open(const dpi_augpe_options *options,
                                                 dpi_augpe **augpe, dpi_error *err);
/* Wipes what it holds of the records. NULL is allowed. */
DPI_API void dpi_augpe_free(dpi_augpe *augpe);
/* What it guarantees: a claim of votes; the object's own. */
DPI_API const dpi_claim *dpi_augpe_claim_of(const dpi_augpe *augpe);
/* How its texts are worded, of which the claim has the digest; the object's own. NULL: they are
 * written elsewhere. */
DPI_API const dpi_wording *dpi_augpe_wording(const dpi_augpe *augpe);

/* A piece of work, and what came of it. The charge comes first, all records are read in one piece
 * after the first candidates are there. Errors: BUDGET and those of dpi_ledger_reserve; IO (a
 * failure of the machine while records are read), ENTROPY, MEMORY, CANCELLED (the session's
 * cancel); those of options.write; STATE after a failure, as the noise of a round is drawn once. */
DPI_API DPI_MUST_CHECK dpi_status dpi_augpe_advance(dpi_augpe *augpe, dpi_augpe_event *event,
                                                    dpi_error *err);

/* A text that is released, *text [*n_bytes] with a NUL behind it, the object's. Before the event
 * NONE *text is NULL. */
DPI_API void dpi_augpe_text(const dpi_augpe *augpe, int32_t index, const char **text,
                            size_t *n_bytes);


#ifdef __cplusplus
}
#endif
#endif
