/* sampler_tang.c - the method of dp/methods/tang.c as a mechanism. */
#include "dp/mechanism/samplers.h"

extern const dpi_method_ops dpi_method_tang;

const dpi_mechanism_ops dpi_mechanism_tang = DPI_SAMPLER_ROW(dpi_method_tang);
