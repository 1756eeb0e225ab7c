#include "pipeline/generation_options.h"

#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

DPI_STRUCT_DEFAULTS(dpi_generation_options, 0)

int32_t dpi_end_is_own(int32_t end) {
    return end == DPI_END_EOG || end == DPI_END_STOP || end == DPI_END_WORDS;
}

dpi_status dpi_generation_options_check(const dpi_generation_options *o, dpi_error *err) {
    if (!o->session || !o->sampler)
        return dpi_fail(err, DPI_STATUS_ARG, "the session or the sampler of a generation is NULL");
    const dpi_sampler_options *s = dpi_sampler_options_get(o->sampler);
    if (o->n_ref != s->n_ref) /* private in some runs: not named */
        return dpi_fail(err, DPI_STATUS_ARG, "n_ref of a generation must be the sampler's");
    if (o->n_ref > 0 && (!o->reference_tokens || !o->n_reference_tokens))
        return dpi_fail(err, DPI_STATUS_ARG, "the reference prompts or their lengths are NULL");
    const int64_t last = o->first_seq + (int64_t)o->n_ref * dpi_sampler_per_unit(s);
    if (o->first_seq < 0 || dpi_session_length(o->session, o->first_seq) < 0 || last > INT32_MAX ||
        dpi_session_length(o->session, (int32_t)last) < 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "sequence %d and those of n_ref references after it must be the session's",
                        (int)o->first_seq);
    DPI_TRY(dpi_check_range("n_piece", o->n_piece, 0, INT32_MAX, err));
    for (int64_t i = 0; o->prompt_seqs && o->n_held && i <= last - o->first_seq; i++)
        if (o->n_held[i] < 0)
            return dpi_fail(err, DPI_STATUS_ARG, "n_held must be 0 or more");
    if (o->n_recalled > 0 && !o->recalled_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "the tokens to recall are NULL");
    DPI_TRY(dpi_check_range("n_recalled", o->n_recalled, 0, s->n_tokens, err));
    DPI_TRY(dpi_check_range("text", o->text, DPI_TEXT_NONE, DPI_TEXT_WHOLE, err));
    DPI_TRY(dpi_check_range("n_begun", o->n_begun, 0, (int64_t)o->n_public, err));
    DPI_TRY(dpi_check_range("n_answer", o->n_answer, 0, (int64_t)o->n_public - o->n_begun, err));
    return dpi_check_range("ignore_eog", o->ignore_eog, 0, 1, err);
}
