#include "tools/command/best_texts.h"

#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/terminal/cli.h"

static int no_memory(void) { return cli_no_memory("the texts"); }

int best_texts_open(best_texts *t, const char *path, int32_t n_each) {
    dpi_error err;
    *t = (best_texts){.n_each = 1, .first_free = -1, .chosen = -1};
    if (n_each == 1)
        return CLI_OK;
    const dpi_status status = dpi_best_of_open(path, &t->of, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_MODEL, &err);
    const int32_t n_words = t->of ? dpi_best_of_words(t->of) : 0;
    if (n_each > 0 && n_words == 0)
        return cli_fail(CLI_USAGE, "--best-of: found no words in %s, needed are vectors of "
                                   "'dpinfer steer --label-field', with --key-words", path);
    if (n_words == 0)
        return CLI_OK;
    t->n_each = n_each > 0 ? n_each : BEST_TEXTS_DEFAULT;
    t->n_drawn = calloc((size_t)dpi_best_of_labels(t->of), sizeof *t->n_drawn);
    return t->n_drawn ? CLI_OK : no_memory();
}

void best_texts_free(best_texts *t) {
    for (int32_t i = 0; i < t->n_held; i++)
        dpi_private_free((char *)t->held[i].text.data);
    free(t->held), free(t->n_drawn);
    dpi_best_of_free(t->of);
    *t = (best_texts){.n_each = 1};
}

/* A place that is free from here on. */
static void let_go(best_texts *t, int32_t place) {
    if (place < 0)
        return;
    held_text *h = &t->held[place];
    dpi_private_free((char *)h->text.data);
    *h = (held_text){.next_free = t->first_free};
    t->first_free = place;
}

/* *place of a text that waits. */
static int hold(best_texts *t, const dpi_drawn_text *drawn, int32_t *place) {
    if (t->first_free < 0 && (size_t)t->n_held == t->room) {
        const size_t room = t->room > 0 ? 2 * t->room : 64;
        held_text *held = realloc(t->held, room * sizeof *held);
        if (!held)
            return no_memory();
        t->held = held, t->room = room;
    }
    char *data = dpi_private_malloc(drawn->n_bytes + 1);
    if (!data)
        return no_memory();
    memcpy(data, drawn->data, drawn->n_bytes);
    data[drawn->n_bytes] = '\0';
    *place = t->first_free < 0 ? t->n_held++ : t->first_free;
    t->first_free = t->first_free < 0 ? -1 : t->held[*place].next_free;
    t->held[*place] = (held_text){*drawn, -1};
    t->held[*place].text.data = data;
    return CLI_OK;
}

int best_texts_put(best_texts *t, const dpi_drawn_text *drawn, int32_t label,
                   dpi_drawn_text *best) {
    dpi_error err;
    int32_t place = -1, forgotten;
    *best = *drawn;
    if (t->n_each == 1)
        return CLI_OK;
    best->index = -1;
    let_go(t, t->chosen);
    t->chosen = -1;
    const int code = hold(t, drawn, &place);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_best_of_add(t->of, label, place, drawn->data, drawn->n_bytes,
                                              &forgotten, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    let_go(t, forgotten);
    if (++t->n_drawn[label] % t->n_each != 0)
        return CLI_OK;
    t->chosen = dpi_best_of_next(t->of, label);
    *best = t->held[t->chosen].text;
    best->index = t->n_chosen++;
    return CLI_OK;
}
