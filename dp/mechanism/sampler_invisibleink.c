/* sampler_invisibleink.c - the method of dp/methods/invisibleink.c as a mechanism. */
#include "dp/mechanism/samplers.h"

extern const dpi_method_ops dpi_method_invisibleink;

const dpi_mechanism_ops dpi_mechanism_invisibleink = DPI_SAMPLER_ROW(dpi_method_invisibleink);
