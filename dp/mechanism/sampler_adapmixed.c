/* sampler_adapmixed.c - the method of dp/methods/adapmixed.c as a mechanism. */
#include "dp/mechanism/samplers.h"

extern const dpi_method_ops dpi_method_adapmixed;

const dpi_mechanism_ops dpi_mechanism_adapmixed = DPI_SAMPLER_ROW(dpi_method_adapmixed);
