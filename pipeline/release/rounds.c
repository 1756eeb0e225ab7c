/* rounds.c - see rounds.h. */
#include "pipeline/release/rounds.h"

#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "dpinfer/memory.h"
#include "pipeline/prompts.h"

static int32_t room(const dpi_rounds *r) { return 2 * r->plan->options.n_released; }

dpi_status dpi_rounds_open(dpi_rounds *r, const dpi_plan *plan, dpi_error *err) {
    *r = (dpi_rounds){.plan = plan};
    if (room(r) == 0)
        return DPI_STATUS_OK;
    r->ended = dpi_private_malloc((size_t)room(r) * sizeof *r->ended);
    if (!r->ended)
        return dpi_no_memory(err, "the texts of a round");
    for (int32_t i = 0; i < room(r); i++)
        r->ended[i] = (dpi_span){NULL, 0};
    return DPI_STATUS_OK;
}

void dpi_rounds_free(dpi_rounds *r) {
    for (int32_t i = 0; r->ended && i < room(r); i++)
        dpi_private_free(r->ended[i].data);
    dpi_private_free(r->ended);
    r->ended = NULL;
}

dpi_batch_range dpi_rounds_seen(const dpi_rounds *r, const dpi_source *source, int32_t text) {
    const int32_t n = r->plan->options.n_released, label = dpi_source_label(source, text);
    const int32_t first = label >= 0 ? dpi_labels_range(&source->labels, label).first : 0;
    const int32_t round = n > 0 ? (text - first) / n : 0;
    return round > 0 ? (dpi_batch_range){.first = first + (round - 1) * n, .n = n}
                     : (dpi_batch_range){0};
}

dpi_status dpi_rounds_put(dpi_rounds *r, int32_t text, const char *bytes, size_t n_bytes,
                          dpi_error *err) {
    if (!r->ended)
        return DPI_STATUS_OK;
    dpi_span *at = &r->ended[text % room(r)];
    char *copy = dpi_private_malloc(n_bytes + 1);
    if (!copy)
        return dpi_no_memory(err, "the texts of a round");
    if (n_bytes > 0)
        memcpy(copy, bytes, n_bytes);
    dpi_private_free(at->data);
    *at = (dpi_span){copy, n_bytes};
    return DPI_STATUS_OK;
}

dpi_status dpi_rounds_prompts(const dpi_rounds *r, const dpi_source *source, int32_t text,
                              dpi_prompts **prompts, dpi_error *err) {
    const dpi_release_options *all = &r->plan->options;
    const dpi_batch_range seen = dpi_rounds_seen(r, source, text);
    dpi_prompt_options o = all->prompts;
    dpi_bytes texts[DPI_EXAMPLES_MAX];
    int32_t n = 0;
    *prompts = NULL;
    for (int32_t i = 0; i < seen.n; i++) {
        const dpi_span *t = &r->ended[(seen.first + i) % room(r)];
        if (t->n_bytes > 0)
            texts[n++] = (dpi_bytes){t->data, t->n_bytes};
    }
    const dpi_bytes label = dpi_plan_label(r->plan, dpi_source_label(source, text));
    o.label = label.data ? label : o.label;
    dpi_status status = n > 0 ? DPI_STATUS_ARG : DPI_STATUS_OK;
    for (int32_t from = 0; from < n && status == DPI_STATUS_ARG; from++)
        status = dpi_prompts_create_released(all->model, &o, texts + from, n - from,
                                             all->session.n_ctx - all->n_tokens, prompts, err);
    return status == DPI_STATUS_ARG ? DPI_STATUS_OK : status;
}
