/* wording_options.h - how texts are worded: --answer, --stop, --min-words and those beside them, of
 * all commands that write texts. */
#ifndef DPI_WORDING_OPTIONS_H
#define DPI_WORDING_OPTIONS_H

#include "dpinfer/wording.h"
#include "tools/options/options.h"

/* What a wording refers to. */
typedef struct wording_input {
    char *answer; /* private memory */
    dpi_bytes stops[MAX_LISTED], bans[MAX_LISTED];
    dpi_token_bias biases[MAX_LISTED];
    dpi_wording wording;
} wording_input;

/* in->wording: that of the options but --logit-bias, checked. CLI_OK or CLI_USAGE with a message;
 * wording_options_free in any case. */
int wording_options_read(const args *a, wording_input *in);
/* --logit-bias, whose tokens are those of a model. CLI_OK or CLI_USAGE with a message. */
int wording_options_bind(const args *a, const dpi_model *model, wording_input *in);
void wording_options_free(wording_input *in);

#endif
