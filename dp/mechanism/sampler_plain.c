/* sampler_plain.c - the method of dp/methods/plain.c as a mechanism. */
#include "dp/mechanism/samplers.h"

extern const dpi_method_ops dpi_method_plain;

const dpi_mechanism_ops dpi_mechanism_plain = DPI_SAMPLER_ROW(dpi_method_plain);
