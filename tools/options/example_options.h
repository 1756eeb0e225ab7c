/* example_options.h - the files of --example. */
#ifndef DPI_EXAMPLE_OPTIONS_H
#define DPI_EXAMPLE_OPTIONS_H

#include "dpinfer/prompts.h"
#include "tools/options/options.h"

/* What the files hold. */
typedef struct example_input {
    dpi_bytes texts[DPI_EXAMPLES_MAX]; /* [n], private memory */
    int32_t n;
} example_input;

/* The examples of a command line into the options of prompts, which refer to `in` from then on.
 * CLI_OK or a code with a message; example_options_free in any case. */
int example_options_read(const args *a, example_input *in, dpi_prompt_options *p);
void example_options_free(example_input *in);

#endif
