/* remote_options.h - the options of a command line that say which model elsewhere is asked. */
#ifndef DPI_REMOTE_OPTIONS_H
#define DPI_REMOTE_OPTIONS_H

#include "tools/options/options.h"
#include "tools/remote/remote.h"

typedef enum remote_needs {
    REMOTE_ALL = 0,
    REMOTE_MODEL_ALONE = 1 /* nothing is sent: no address and no key */
} remote_needs;

/* All but n_tokens. o->key is the caller's, to be freed with dpi_private_free, also
 * after a failure. CLI_OK, or CLI_USAGE with a message. */
int remote_options_read(const args *a, remote_needs needs, remote_options *o);

#endif
