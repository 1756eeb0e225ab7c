/* probe_labels.h - releases with labels and a histogram of them that is charged, for mutants. */
#ifndef DPI_PROBE_LABELS_H
#define DPI_PROBE_LABELS_H

#include "dpinfer/ledger.h"
#include "dpinfer/model.h"

/* What is wrong with their charge and with whom the histogram counts; NULL: nothing. */
const char *probe_labels(dpi_ledger *ledger, const dpi_model *model, const char *folder);

#endif
