/* measure_openings.c - see measure_openings.h. */
#include "eval/measure_openings.h"

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/intervals.h"
#include "eval/openings.h"

dpi_status eval_measure_openings(evaluation *e, const eval_sources *s, dpi_error *err) {
    static const char *const keys[EVAL_OPENINGS][2] = {{"preambles", "preambles_real"},
                                          {"refusals", "refusals_real"}};
    static const char *const labels[EVAL_OPENINGS][2] = {
        {"texts that begin with a preamble (\"Sure! Here is ..\")", "the same of real texts"},
        {"texts that refuse (\"I'm sorry, but I can't ..\")", "the same of real texts"}};
    const eval_texts *const sets[] = {s->synthetic, s->real};
    const int32_t most = s->synthetic->n > s->real->n ? s->synthetic->n : s->real->n;
    double *found = dpi_private_malloc(((size_t)most + 1) * sizeof *found);
    dpi_status status = found ? DPI_STATUS_OK : eval_no_memory(err, "how texts begin");
    for (int32_t i = 0; i < 2 * EVAL_OPENINGS && status == DPI_STATUS_OK; i++) {
        status = eval_openings_find(sets[i % 2], (eval_opening)(i / 2), found, err);
        if (status == DPI_STATUS_OK)
            status = eval_add_mean(e, "openings", keys[i / 2][i % 2], labels[i / 2][i % 2], found,
                                   sets[i % 2]->n, err);
    }
    dpi_private_free(found);
    return status;
}
