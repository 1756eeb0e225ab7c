/* candidate_jobs.c - what all phases of a private evolution use: who writes what, public bits. */
#include "base/rng.h"
#include "pipeline/augpe/augpe.h"

bool dpi_augpe_is_cancelled(const dpi_augpe *f) {
    const dpi_session_options *o = &f->options.session;
    return o->cancel && o->cancel(o->cancel_user);
}

uint64_t dpi_augpe_public_bits(dpi_augpe *f) {
    uint64_t bits = 0;
    (void)!dpi_random_insecure(&f->public_bits, &bits, sizeof bits); /* it cannot fail */
    return bits;
}

double dpi_augpe_uniform(dpi_augpe *f) {
    return (double)(dpi_augpe_public_bits(f) >> 11) * 0x1p-53;
}

void dpi_augpe_empty(dpi_text *text) {
    text->n_bytes = 0;
    if (text->data)
        text->data[0] = '\0';
}

/* From the second round on the chosen ones stand first, unless each is to be replaced. */
int32_t dpi_augpe_first_new(const dpi_augpe *f) {
    return f->round > 1 && f->options.n_candidates > 1 ? f->options.n_texts : 0;
}

void dpi_augpe_job(dpi_augpe *f, int32_t i, const dpi_text **from, dpi_text **to) {
    const int32_t first = dpi_augpe_first_new(f), L = f->options.n_candidates;
    if (f->phase == DPI_PHASE_AHEAD) {
        *from = &f->candidates[first + i / f->options.n_lookahead];
        *to = &f->ahead[i];
    } else {
        *from = f->round == 1 ? NULL : &f->chosen[L > 1 ? i / (L - 1) : i];
        *to = &f->candidates[first + i];
    }
}
