/* registry.h - which methods there are, their parameters and what is proven of them: command
 * lines, reports and language bindings are made from this and know no method by name.
 *
 *     for (id = 0; id < dpi_method_count(); id++)
 *         dpi_method_get(id) -> name, title, what is proven
 *         for (i = 0; i < dpi_method_parameter_count(id); i++)
 *             dpi_method_parameter_get(id, i) -> name, range, default, one line of help
 *
 * Everything that is returned is static and constant. Threads: pure functions over the caller's
 * options. */
#ifndef DPINFER_REGISTRY_H
#define DPINFER_REGISTRY_H

#include "dpinfer/account.h"
#include "dpinfer/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Methods -------------------------------------------------------------------------------- */

typedef struct dpi_method_info {
    int32_t id;        /* a dpi_method */
    const char *name;  /* "invisibleink": of command lines and reports */
    const char *title; /* "InvisibleInk": in texts for people */
    const char *help;  /* one line, without a period at its end */
    const char *source; /* the paper; "" without one */
    int32_t has_guarantee; /* 1: a method with a differential privacy guarantee */
    const char *warning;   /* why there is none, after "NOT PRIVATE: "; NULL with a guarantee */
    int32_t needs_acknowledgement; /* 1: options.acknowledge_not_dp must be 1 */
    int32_t min_ref, max_ref; /* reference slots; 0 and 0: the public logits alone */
    /* What is proven: bits 1 << dpi_accountant, 1 << dpi_adjacency; centring; secret assignment;
     * units of several records. 0 without a guarantee. */
    uint32_t accountants, adjacencies;
    int32_t centers, subsamples, units;
    const char *output;     /* what leaves with the tokens, ", and ..."; "" if nothing does */
    const char *assumption; /* what else its cost rests on: a sentence; NULL: nothing */
} dpi_method_info;

/* Methods have the ids 0..count-1, which never change. */
DPI_API int32_t dpi_method_count(void);
/* NULL if there is no such method. */
DPI_API const dpi_method_info *dpi_method_get(int32_t id);
/* By its name; NULL if there is none. */
DPI_API const dpi_method_info *dpi_method_find(const char *name);

/* ---- Parameters ----------------------------------------------------------------------------- */

typedef enum dpi_parameter_type {
    DPI_PARAMETER_INT = 0,   /* the field is an int32_t */
    DPI_PARAMETER_REAL = 1,  /* a double */
    DPI_PARAMETER_FLAG = 2,  /* an int32_t, 0 or 1 */
    DPI_PARAMETER_CHOICE = 3, /* an int32_t, an index into choices */
    DPI_PARAMETER_TEXT = 4    /* of a mechanism alone (claim.h): at most max bytes */
} dpi_parameter_type;

/* A parameter that means the same in several methods has the same name there, and only then. */
typedef struct dpi_parameter {
    const char *name;       /* "svt_sigma"; unique in a method */
    const char *option;     /* "svt-sigma": of a command line */
    const char *old_option; /* "sigma": an older spelling, clear in the method; or NULL */
    const char *key;        /* "sigma": in the section `parameters` of a report */
    const char *label;      /* "sigma of threshold": in a statement */
    const char *help;       /* one line, without a period at its end */
    const char *unit;       /* "tokens"; "" for a pure number, a flag or a choice */
    int32_t type;           /* a dpi_parameter_type */
    uint32_t offset;        /* of the field in dpi_sampler_options, bytes */
    double min, max;        /* INT, REAL */
    int32_t min_open, max_open; /* REAL; 1: the end itself is not allowed */
    const char *zero;       /* what 0 means where it is allowed beside the range; NULL: it is not */
    int32_t is_optional;    /* not 0: 0 is "not given", which a report writes as null; 2: and a
                               claim leaves it out, as those of older programs do not have it */
    double default_value;   /* of dpi_method_defaults; 0 where it is only in words */
    const char *default_text; /* the default in words ("all of them"); NULL: the number */
    const char *const *choices; /* CHOICE: names, ended by NULL; else NULL */
    const char *needs; /* the name of a parameter that is to be given with it; NULL: none */
} dpi_parameter;

/* The parameters of a method, common ones included, in the order of a report. 0 and NULL if there
 * is no such method or parameter. */
DPI_API int32_t dpi_method_parameter_count(int32_t id);
DPI_API const dpi_parameter *dpi_method_parameter_get(int32_t id, int32_t index);
/* By its name; NULL if the method has none of that name. */
DPI_API const dpi_parameter *dpi_method_parameter_find(int32_t id, const char *name);

/* What is allowed, for people: "0.01..100", "0 < x <= 1e+06", "1..4096, or 0 (...)", "zcdp|br". At
 * most `size` bytes with the NUL. */
DPI_API void dpi_parameter_range(const dpi_parameter *parameter, char *text, size_t size);

/* The value of a field, and a value to the field. Every value of a parameter is exact in a double.
 * Errors of _set: ARG (with the range; NaN is refused); the field is unchanged. What depends on
 * other options, such as top_k on n_vocab, is checked by dpi_sampler_plan_make. */
DPI_API double dpi_parameter_value(const dpi_parameter *parameter,
                                   const dpi_sampler_options *options);
DPI_API DPI_MUST_CHECK dpi_status dpi_parameter_set(const dpi_parameter *parameter,
                                                    dpi_sampler_options *options, double value,
                                                    dpi_error *err);

/* The same as text: decimal numbers, 0 or 1 for a flag, the name of a choice. dpi_parameter_print
 * writes what dpi_parameter_parse reads back to the same bits. Errors: ARG. */
DPI_API void dpi_parameter_print(const dpi_parameter *parameter,
                                 const dpi_sampler_options *options, char *text, size_t size);
DPI_API DPI_MUST_CHECK dpi_status dpi_parameter_parse(const dpi_parameter *parameter,
                                                      dpi_sampler_options *options,
                                                      const char *text, dpi_error *err);

/* Sets options->method and each parameter of it to its default; the other fields stay.
 * dpi_sampler_options_init does the same for InvisibleInk. Errors: ARG (no such method). */
DPI_API DPI_MUST_CHECK dpi_status dpi_method_defaults(int32_t id, dpi_sampler_options *options,
                                                      dpi_error *err);

/* T where nobody says it, with n_ctx (>= 2) tokens of context: DPI_TOKENS_DEFAULT, or half the
 * context if that is less. */
DPI_API int32_t dpi_tokens_default(int32_t n_ctx);

/* ---- What options come to ------------------------------------------------------------------- */

typedef enum dpi_fact_type {
    DPI_FACT_INT = 0,
    DPI_FACT_REAL = 1,
    DPI_FACT_BOUND = 2, /* an upper bound: digits that are cut off round it up */
    DPI_FACT_TEXT = 3,
    DPI_FACT_FLAG = 4 /* 0 or 1 */
} dpi_fact_type;

/* Where a fact is shown. */
#define DPI_FACT_STATEMENT 1 /* to people, and in the JSON of a plan */
#define DPI_FACT_REALISED 2  /* in the section `realised` of a report */

/* A public number or sentence that is the method's own. */
typedef struct dpi_fact {
    const char *key;   /* in JSON; NULL: for people alone */
    const char *label; /* for people; NULL: for programs alone */
    int32_t type;      /* a dpi_fact_type */
    int32_t where;     /* of DPI_FACT_STATEMENT and DPI_FACT_REALISED */
    int64_t integer;   /* INT, FLAG */
    double real;       /* REAL, BOUND */
    char text[128];    /* TEXT */
} dpi_fact;

#define DPI_FACTS_MAX 16

/* facts[DPI_FACTS_MAX] = what a statement of options->method shows beside its parameters and the
 * common fields of the plan, which is that of the options. Returns their number. */
DPI_API int32_t dpi_method_facts(const dpi_sampler_options *options, const dpi_sampler_plan *plan,
                                 dpi_fact *facts);

/* What a text costs by these options, of which `plan` was made, as a ledger counts it (account.h);
 * so does a run over disjoint batches. Errors: UNSUPPORTED (the method has no guarantee). */
DPI_API DPI_MUST_CHECK dpi_status dpi_method_cost(const dpi_sampler_options *options,
                                                  const dpi_sampler_plan *plan, dpi_cost *cost,
                                                  dpi_error *err);

/* What stands in the place of a record that is exchanged, for people. NULL without a guarantee. */
DPI_API const char *dpi_method_neighbours(const dpi_sampler_options *options);

/* Of a dpi_accountant: how it counts. Static. */
DPI_API const char *dpi_accountant_text(int32_t accountant);
/* What plan.rho_total is: "rho, spent". Static. */
DPI_API const char *dpi_rho_label(const dpi_sampler_options *options);

/* "InvisibleInk: temperature 1, ...": what the method does with the options that cost nothing. At
 * most `size` bytes with the NUL. */
DPI_API void dpi_method_settings(const dpi_sampler_options *options, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
