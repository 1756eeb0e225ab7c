/* run.h - what makers of runs and of claims share. Internal. */
#ifndef DPI_PIPELINE_RUN_H
#define DPI_PIPELINE_RUN_H

#include <stdbool.h>

#include "base/text.h"
#include "dpinfer/run.h"

/* Sets model_name from a string of a file, whose bytes may be anything: one that would steer a
 * terminal becomes '?', and if it is not UTF-8 every byte that is not ASCII. Cut to whole
 * characters. */
void dpi_run_name_model(dpi_run *run, const char *name);
/* The same into text [size]. */
void dpi_claim_name_text(char *text, size_t size, const char *name);

/* Whether some text of n_texts can have so many texts of the round before in its prompts. Errors:
 * ARG. */
dpi_status dpi_run_check_released(int32_t released, int64_t n_texts, dpi_error *err);

/* Why no guarantee holds with this randomness, static; NULL: it is secret. */
const char *dpi_randomness_warning(int32_t randomness);
/* "PRIVATE", or "NOT PRIVATE: " and the warning, where it is not NULL. As snprintf. */
size_t dpi_warning_label(const char *warning, char *text, size_t size);

#endif
