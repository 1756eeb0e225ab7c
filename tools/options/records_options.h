/* records_options.h - how records are read. */
#ifndef DPI_RECORDS_OPTIONS_H
#define DPI_RECORDS_OPTIONS_H

#include "dpinfer/records.h"
#include "tools/options/options.h"

/* How the command line says that records are read. CLI_OK, or CLI_USAGE with a message. */
int records_options(const args *a, dpi_records_options *options);
/* Opens them. CLI_OK, or CLI_RECORDS with a message. */
int records_open(const char *path, const dpi_records_options *options, dpi_records **records);
/* The same for one option, as --delimiter and --encoding have it; messages name `source`. */
int records_delimiter(const char *source, const char *text, dpi_records_options *options);
void records_encoding(const option_value *encoding, dpi_records_options *options);

#endif
