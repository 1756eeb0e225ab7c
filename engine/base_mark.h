/* base_mark.h - of which model an adapter, or a control vector, is. Internal. */
#ifndef DPI_BASE_MARK_H
#define DPI_BASE_MARK_H

#include "gguf/gguf.h"

/* Errors: FORMAT (the file is of another model than the one with this mark). */
DPI_MUST_CHECK dpi_status dpi_base_mark_check(const dpi_gguf *file, uint64_t mark, dpi_error *err);

#endif
