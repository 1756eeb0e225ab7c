/* private_records.h - the records that a command is about. */
#ifndef DPI_PRIVATE_RECORDS_H
#define DPI_PRIVATE_RECORDS_H

#include "dpinfer/records.h"
#include "tools/options/options.h"

/* Opens those of the positional argument `index`, and says what is not told of their fields,
 * whatever these are. CLI_OK, or CLI_RECORDS with a message. */
int records_open_private(const args *a, int index, const dpi_records_options *options,
                         dpi_records **records);

#endif
