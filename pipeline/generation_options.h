/* generation_options.h - what a generation may be made from. Internal. */
#ifndef DPI_GENERATION_OPTIONS_H
#define DPI_GENERATION_OPTIONS_H

#include "dpinfer/generation.h"

/* Each option by itself, and whether the session has the sequences. No message names what is
 * private. Errors: ARG. */
dpi_status dpi_generation_options_check(const dpi_generation_options *options, dpi_error *err);

#endif
