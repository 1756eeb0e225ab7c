/* audit.h - attempts to catch the program leaking more than it claims. */
#ifndef DPI_AUDIT_AUDIT_H
#define DPI_AUDIT_AUDIT_H

#include "dpinfer/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attempts to catch this program leaking more than it claims, on this machine: made-up records, and
 * a model if there is one, through the functions that write texts (dp/PRIVACY.md section 9). What
 * passes is not a proof; what fails is a fault. Source: docs/spec.md section 5. */
typedef struct dpi_audit_options {
    size_t struct_size;
    const dpi_model *model; /* for audits of logits, texts and evolutions; NULL (default):
                               without them */
    dpi_session_options session; /* of the model; n_seq and n_ctx are the audit's own */
    uint64_t seed;          /* of the made-up records; default 1 */
    double effort;          /* .1..1: share of the cases and draws; default 1 */
    double false_alarm;     /* [1e-12, 0.01]: chance, for each statistical line, that a sound
                               program fails it; default 1e-9. A line is looked at a second time,
                               with four times as many draws, before it fails by a chance above
                               half of that: it fails if both looks are below the root of it */
    dpi_random_fn random;   /* what audited draws use: NULL (default): getrandom(2) */
    void *random_user;
    dpi_cancel_fn cancel; /* called between audits; may be NULL */
    void *cancel_user;
    const char *folder; /* an empty folder for made-up files, which audits write and remove; NULL
                           (default): without the audits that need files */
} dpi_audit_options;

/* One line of the report. Strings are static. */
typedef struct dpi_audit_result {
    size_t struct_size;
    const char *audit;    /* what it holds, of dp/PRIVACY.md section 9: "loss", "draws", "game",
                             "canaries", "releases" */
    const char *subject;  /* "InvisibleInk, zero-out, centred, filter" */
    const char *quantity; /* what `measured` is */
    double measured;
    double min, max; /* where `measured` has to lie; either may be infinite */
    int64_t n_cases;
    int32_t passed;      /* 1: all checks held, and min <= measured <= max */
    const char *failure; /* the first check that did not hold, or NULL */
    double seconds;
    int32_t n_looks;     /* 2: the first look was suspicious, and these are the second's numbers */
} dpi_audit_result;

typedef void (*dpi_audit_fn)(void *user, const dpi_audit_result *result);

DPI_API void dpi_audit_options_init_size(dpi_audit_options *options, size_t size);
#define dpi_audit_options_init(o) dpi_audit_options_init_size((o), sizeof *(o))
DPI_API void dpi_audit_result_init_size(dpi_audit_result *result, size_t size);
#define dpi_audit_result_init(o) dpi_audit_result_init_size((o), sizeof *(o))

/* Runs all audits and reports each as it ends. *n_failed (not NULL) counts those that did not pass:
 * that is no error. Errors: ARG, CANCELLED, IO (the folder), and those of audited functions
 * (MEMORY, ENTROPY). */
DPI_API DPI_MUST_CHECK dpi_status dpi_audit_run(const dpi_audit_options *options,
                                                dpi_audit_fn on_result, void *user,
                                                int32_t *n_failed, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
