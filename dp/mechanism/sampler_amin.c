/* sampler_amin.c - the method of dp/methods/amin.c as a mechanism. */
#include "dp/mechanism/samplers.h"

extern const dpi_method_ops dpi_method_amin;

const dpi_mechanism_ops dpi_mechanism_amin = DPI_SAMPLER_ROW(dpi_method_amin);
