/* text_option.h - a text from its option or from the file of another one. */
#ifndef DPI_TEXT_OPTION_H
#define DPI_TEXT_OPTION_H

#include "dpinfer/text.h"
#include "tools/options/options.h"

/* *text: of --NAME TEXT, or of --NAME-file FILE without the end of its last line; data NULL:
 * neither is given. *loaded: what it may refer to, private memory, the caller's in any case. CLI_OK
 * or a code with a message. */
int text_option_read(const args *a, option_id direct, option_id file, char **loaded,
                     dpi_bytes *text);

#endif
