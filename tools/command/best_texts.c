#include "tools/command/best_texts.h"

#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/terminal/cli.h"

static int no_memory(void) { return cli_no_memory("the texts"); }

int best_texts_open(best_texts *t, const char *path, int32_t n_each) {
    dpi_error err;
    *t = (best_texts){.n_each = n_each};
    if (n_each == 1)
        return CLI_OK;
    const dpi_status status = dpi_best_of_open(path, &t->of, &err);
    if (status != DPI_STATUS_OK || !t->of)
        return status != DPI_STATUS_OK ? cli_fail_library(CLI_MODEL, &err)
                                       : cli_fail(CLI_MODEL, "%s: found no words of records", path);
    t->n_drawn = calloc((size_t)dpi_best_of_labels(t->of), sizeof *t->n_drawn);
    return t->n_drawn ? CLI_OK : no_memory();
}

void best_texts_free(best_texts *t) {
    for (int32_t i = 0; i < t->n_held; i++)
        dpi_private_free((char *)t->held[i].data);
    free(t->held), free(t->n_drawn);
    dpi_best_of_free(t->of);
    *t = (best_texts){.n_each = 1};
}

/* A text that waits, by its number. */
static int hold(best_texts *t, const dpi_drawn_text *drawn) {
    if ((size_t)t->n_held == t->room) {
        const size_t room = t->room > 0 ? 2 * t->room : 64;
        dpi_drawn_text *held = realloc(t->held, room * sizeof *held);
        if (!held)
            return no_memory();
        t->held = held, t->room = room;
    }
    char *data = dpi_private_malloc(drawn->n_bytes + 1);
    if (!data)
        return no_memory();
    memcpy(data, drawn->data, drawn->n_bytes);
    data[drawn->n_bytes] = '\0';
    t->held[t->n_held] = *drawn;
    t->held[t->n_held++].data = data;
    return CLI_OK;
}

int best_texts_put(best_texts *t, const dpi_drawn_text *drawn, int32_t label,
                   dpi_drawn_text *best) {
    dpi_error err;
    *best = *drawn;
    if (t->n_each == 1)
        return CLI_OK;
    best->index = -1;
    const int code = hold(t, drawn);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_best_of_add(t->of, label, t->n_held - 1, drawn->data,
                                              drawn->n_bytes, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    if (++t->n_drawn[label] % t->n_each == 0) {
        *best = t->held[dpi_best_of_next(t->of, label)];
        best->index = t->n_chosen++;
    }
    return CLI_OK;
}
