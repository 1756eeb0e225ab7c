/* report.h - the privacy report of a release: the checklist of Ponomareva et al. 2023, "How to
 * DP-fy ML", section 5.3.3, filled in, as JSON, as Markdown and as a page of HTML that begins in
 * plain words. Part of libdpinfer_full.
 *
 * It may be released as it is. Every value is an option, a fact about the program or the model, or
 * follows from those or from the released texts; none is derived from what is in a record. The
 * sections `claim`, `wording`, `prompts`, `software`, `model`, `meta`, `output`, `charges` and the
 * flag `complete` are what a reader has to believe; all others are functions of the section
 * `claim`, so that they can be made a second time. */
#ifndef DPINFER_REPORT_H
#define DPINFER_REPORT_H

#include "dpinfer/run.h"
#include "dpinfer/claim.h"
#include "dpinfer/ledger.h"
#include "dpinfer/model.h"
#include "dpinfer/wording.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_report dpi_report;

typedef enum dpi_report_format {
    DPI_REPORT_JSON = 0,
    DPI_REPORT_MARKDOWN = 1,
    DPI_REPORT_HTML = 2 /* one file: no script, nothing from a network */
} dpi_report_format;

/* A report of a claim. Hashes the files of the model, which was opened by model_path, and of this
 * program: for large models that takes a while, and is best done before a record is read.
 * Errors: ARG (the claim), IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_create(const dpi_run *run, const dpi_model *model,
                                                    const char *model_path, dpi_report **report,
                                                    dpi_error *err);
/* A report of any claim. model NULL with a path: the hash of that file alone; path NULL: there is
 * no model. Errors: as dpi_report_create; those of dpi_claim_settle. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_of(const dpi_claim *claim, const dpi_model *model,
                                                const char *model_path, dpi_report **report,
                                                dpi_error *err);
/* A report of another run with the same model and program, whose files are not hashed again: for a
 * server. It holds nothing else of `report`. Errors: ARG (the claim; a parsed report), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_again(const dpi_report *report,
                                                   const dpi_run *run, dpi_report **again,
                                                   dpi_error *err);
/* The claim of the same run as it is now: after it was charged to a ledger. Errors: ARG (the claim,
 * or a parsed report). */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_update(dpi_report *report, const dpi_run *run,
                                                    dpi_error *err);
/* Fields of the operator, such as organisation and purpose: a JSON object of at most 32 texts.
 * `name` is the file's, for messages. Errors: FORMAT, LIMIT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_meta(dpi_report *report, const char *name,
                                                  const char *text, size_t n_bytes, dpi_error *err);
/* How texts are worded, of which the report then has all; needed where the claim has its digest.
 * Errors: ARG (it is not that of the claim), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_wording(dpi_report *report,
                                                     const dpi_wording *wording, dpi_error *err);
/* The prompts in full, as dpi_release_prompts writes them; a report has them only if it is told.
 * Errors: ARG (they are not those of the claim), FORMAT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_prompts(dpi_report *report, const char *json,
                                                     dpi_error *err);
/* Bytes of the output, in their order: the report has the hash of all of them. */
DPI_API void dpi_report_output_add(dpi_report *report, const void *bytes, size_t n_bytes);
/* The whole output at once: a file that is there now. jsonl 1: a text is a line of it; 0: an empty
 * line stands between texts. n_text_bytes: of all texts in it, with the ends of their lines, but
 * without what stands between them; -1: neither is said. Errors: IO. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_output_file(dpi_report *report, const char *path,
                                                         int32_t jsonl, int64_t n_text_bytes,
                                                         dpi_error *err);
/* A text that is released as a whole: label (NULL: none), tokens (-1: nobody counted them), a
 * dpi_end. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_text_add(dpi_report *report, const char *label,
                                                      int32_t n_tokens, int32_t end,
                                                      dpi_error *err);
/* What all texts together are, of which a report says nothing before: how many max_words has ended
 * (-1: nobody counted them), how many are near copies of another one. */
DPI_API void dpi_report_texts_told(dpi_report *report, int32_t n_at_max_words, int32_t n_alike);
/* The charges of the dataset up to now, for the plot of its budget: the last 400. Errors: those of
 * dpi_ledger_charge_next; MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_charges(dpi_report *report, dpi_ledger *ledger,
                                                     const char *dataset, dpi_error *err);

/* A report from its JSON. It comes from anywhere: nothing in it is trusted. `name` is the file's,
 * for messages. Errors: FORMAT (not JSON, not a report, a version or a parameter that is not
 * known), LIMIT (more than 1 MiB), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_parse(const char *name, const char *text,
                                                   size_t n_bytes, dpi_report **report,
                                                   dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_report_free(dpi_report *report);

/* What it claims, settled; the report's own. */
DPI_API const dpi_claim *dpi_report_claimed(const dpi_report *report);
/* The same as the numbers of a run. */
DPI_API const dpi_run *dpi_report_run(const dpi_report *report);

/* The report as a string [*n_bytes] with a NUL behind it, which the caller frees with free.
 * complete 0: the run stopped early. Errors: ARG (format; a parsed report), STATE (the claim has a
 * wording, and the report was not told), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_text(const dpi_report *report, int32_t complete,
                                                  int32_t format, char **text, size_t *n_bytes,
                                                  dpi_error *err);

/* ---- Verification ---------------------------------------------------------------------------- */

typedef enum dpi_verdict {
    DPI_VERDICT_OK = 0,   /* follows from the parameters, as recorded */
    DPI_VERDICT_GIVEN = 1, /* is not computed: a parameter, or what only the operator can vouch
                              for */
    DPI_VERDICT_WRONG = 2
} dpi_verdict;

/* Values are JSON of at most 79 bytes, printable ASCII; "(none)" where there is no such field. */
typedef struct dpi_verified_field {
    char path[160]; /* "realised.K" */
    char recorded[80], computed[80]; /* computed: "the same" for a text that is */
    int32_t verdict; /* a dpi_verdict */
} dpi_verified_field;

typedef struct dpi_verification {
    size_t struct_size;
    dpi_verified_field *fields; /* [n_fields], in the order of the report */
    size_t n_fields, n_ok, n_wrong;
    int32_t is_private;   /* dpi_run_is_private */
    int32_t model_hashed; /* 1: the hashes of the model's files were computed too */
    int32_t output_hashed; /* 1: that of the output */
    int32_t reserved;
    char label[160];      /* dpi_run_label */
    uint64_t room[4]; /* all 0: for what is to come */
} dpi_verification;

DPI_API void dpi_verification_init_size(dpi_verification *result, size_t size);
#define dpi_verification_init(o) dpi_verification_init_size((o), sizeof *(o))

/* Computes all that follows from the parameters of a parsed report a second time, and compares.
 * With model_path the hashes of the model's files too, with output_path that of the output; both
 * may be NULL. A field that does not hold is no
 * error. *result, after dpi_verification_init, is freed with dpi_verification_free.
 * Errors: ARG, UNSUPPORTED, BUDGET (no run has these parameters), IO (a file), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_verify(const dpi_report *report,
                                                    const char *model_path,
                                                    const char *output_path,
                                                    dpi_verification *result, dpi_error *err);
DPI_API void dpi_verification_free(dpi_verification *result);
/* Adds whether the claim of a parsed report is `found`, which was computed in another way, value by
 * value. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_compare_claim(const dpi_report *report,
                                                           const dpi_claim *found,
                                                           dpi_verification *result,
                                                           dpi_error *err);
/* Adds whether a parsed report of a run that was steered has the claim of that file of vectors, and
 * what holds of it. Errors: ARG (it has none; a claim that is malformed), FORMAT, IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_compare_vectors(const dpi_report *report,
                                                             const char *path,
                                                             dpi_verification *result,
                                                             dpi_error *err);
/* The claim of an adapter, or of a model that was trained, in a GGUF file: what it says, settled,
 * and what follows from it and from the file's tensors against what the file says of both. A field
 * that does not hold is no error. *result, after dpi_verification_init, is freed with
 * dpi_verification_free in any case. Errors: IO, FORMAT (a file without a claim), ARG (a claim that
 * is malformed, or that no training has), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_verify_file(const char *path, dpi_claim *claim,
                                                        dpi_verification *result,
                                                        dpi_error *err);

/* Whether the ledger has the charge of a parsed report: one that was replaced by an earlier copy of
 * itself does not. Errors: STATE (it does not), ARG (the report has no charge; the ledger no such
 * dataset), those of dpi_report_verify and of the ledger. */
DPI_API DPI_MUST_CHECK dpi_status dpi_report_find_charge(const dpi_report *report,
                                                         dpi_ledger *ledger, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
