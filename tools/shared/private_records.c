/* private_records.c - see private_records.h. */
#include "tools/shared/private_records.h"

#include "tools/options/records_options.h"
#include "tools/ranks/ranks.h"

int records_open_private(const args *a, int index, const dpi_records_options *options,
                         dpi_records **records) {
    const char *path = a->positional[index];
    const int code = records_open(path, options, records);
    if (code == CLI_OK && options->unit_field && !options->public_fields &&
        dpi_records_kind(*records) == DPI_RECORD_LINE && !a->v[OPT_QUIET].i && ranks_own() == 0)
        cli_note("note: lines of %s without '%s' have no ID and are null. No run says how many; "
                 "'dpinfer records' does. --public-fields refuses a name that no line has", path,
                 options->unit_field);
    return code;
}
