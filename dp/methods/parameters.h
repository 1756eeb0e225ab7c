/* parameters.h - the parameters that several methods share, described once, and what describes one
 * of a method's own. Internal; the public contract is in dpinfer/registry.h.
 *
 * A method's list is an array of pointers, ended by NULL, in the order of a report: to entries of
 * dpi_common and to its own. */
#ifndef DPI_PARAMETERS_H
#define DPI_PARAMETERS_H

#include <stddef.h>

#include "dpinfer/registry.h"

typedef enum dpi_common_parameter {
    DPI_COMMON_ACCOUNTANT,
    DPI_COMMON_ADJACENCY,
    DPI_COMMON_RHO,
    DPI_COMMON_EPSILON,
    DPI_COMMON_DELTA,
    DPI_COMMON_SUBSAMPLE,
    DPI_COMMON_ALLOCATION,
    DPI_COMMON_N_TOKENS,
    DPI_COMMON_DENOMINATOR,
    DPI_COMMON_TAU,
    DPI_COMMON_N_VOCAB,
    DPI_COMMON_CLIP,
    DPI_COMMON_CENTER,
    DPI_COMMON_MAX_PER_UNIT,
    DPI_COMMON_COUNT
} dpi_common_parameter;

extern const dpi_parameter dpi_common[DPI_COMMON_COUNT];
/* Of methods with a pace. The choices of the kind are NULL-terminated names of dpi_pace. */
extern const dpi_parameter dpi_pace_kind, dpi_pace_theta;

/* Of a field of dpi_sampler_options, for .offset. */
#define DPI_FIELD(field) ((uint32_t)offsetof(dpi_sampler_options, field))

/* ARG, with the range, if a value is not allowed; NaN is refused. */
dpi_status dpi_parameter_check(const dpi_parameter *parameter, double value, dpi_error *err);

/* *value = the one that a text says, as dpi_parameter_parse; not of type TEXT. Errors: ARG. */
dpi_status dpi_parameter_read(const dpi_parameter *parameter, const char *text, double *value,
                              dpi_error *err);

/* The default to the field, which may be 0 where a value has to be given. */
void dpi_parameter_default(const dpi_parameter *parameter, dpi_sampler_options *options);

#endif
