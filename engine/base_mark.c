#include "engine/base_mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

dpi_status dpi_base_mark_check(const dpi_gguf *file, uint64_t mark, dpi_error *err) {
    char own[17];
    dpi_str base = {"", 0};
    bool found = false;
    DPI_TRY(dpi_gguf_get_string(file, DPI_BASE_MARK, &base, &found, err));
    snprintf(own, sizeof own, "%016" PRIx64, mark);
    if (!found || (base.n_bytes >= 16 && memcmp(base.data, own, 16) == 0))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "%s is of another model: " DPI_BASE_MARK " is '%.*s', this model has %s",
                    dpi_gguf_name(file), (int)(base.n_bytes > 80 ? 80 : base.n_bytes), base.data,
                    own);
}
