/* attributes.h - labels that are the values of several attributes: their places in an instruction.
 * Public texts alone. Internal. */
#ifndef DPI_FINETUNE_ATTRIBUTES_H
#define DPI_FINETUNE_ATTRIBUTES_H

#include "pipeline/finetune/examples.h"

/* Names and labels of the options. Errors: ARG (no labels; names that are blank or the same, or not
 * in the instruction; a label with another number of values). */
DPI_MUST_CHECK dpi_status dpi_attributes_check(const dpi_instruction_options *options,
                                               dpi_error *err);
/* The text with the values of a label in place of {NAME}: *filled is the caller's, to free with
 * free. Errors: ARG (a label with another number of values), MEMORY. */
DPI_MUST_CHECK dpi_status dpi_attributes_fill(dpi_bytes text, const char *const *names,
                                              int32_t n_names, const char *label, char **filled,
                                              dpi_error *err);
/* In how many values two labels differ. */
int32_t dpi_attributes_differing(const char *a, const char *b);

#endif
