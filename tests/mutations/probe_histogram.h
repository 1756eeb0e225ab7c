/* probe_histogram.h - the histogram of labels of a training, under mutations. */
#ifndef DPI_PROBE_HISTOGRAM_H
#define DPI_PROBE_HISTOGRAM_H

#include "dpinfer/model.h"

/* What is wrong with its noise, its units, its part of epsilon and of the charge, and with how
 * often it is drawn; NULL: nothing. */
const char *probe_histogram(const dpi_model *model, const char *folder);

#endif
