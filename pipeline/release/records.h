/* records.h - what a release needs of its records beside dpinfer/records.h. Internal. */
#ifndef DPI_RELEASE_RECORDS_H
#define DPI_RELEASE_RECORDS_H

#include "dpinfer/records.h"

/* FORMAT, with a message that there is no record. */
dpi_status dpi_records_refuse_empty(const dpi_records *records, dpi_error *err);

#endif
