#include "engine/pass.h"

#include <omp.h>

/* An operation's state of shares: there are two sets, of which one rests and is cleared. */
static dpi_share_state *shares_of(const dpi_pass *p, int32_t n) {
    return p->s->shares + (n % 2 ? p->s->n_threads : 0);
}

static void clear_own_share(const dpi_pass *p, int32_t n) {
    dpi_share_clear(&shares_of(p, n)[p->thread]);
}

void dpi_pass_run(dpi_session *s, const dpi_token_batch *batch, int64_t n_products,
                  dpi_pass_fn *run, const void *context) {
    int32_t n_threads = n_products < s->worth_sharing ? 1 : s->n_threads;
#pragma omp parallel num_threads(n_threads)
    {
        dpi_pass p = {.s = s,
                      .batch = batch,
                      .first = batch->first,
                      .n_rows = batch->n_rows,
                      .thread = omp_get_thread_num(),
                      .n_threads = omp_get_num_threads()};
        clear_own_share(&p, 0);
        run(&p, context);
    }
}

void dpi_pass_meet(dpi_pass *p) {
    if (p->has_written && p->n_threads > 1)
        dpi_barrier_wait(&p->s->barrier, p->n_threads, &p->spin);
    p->has_written = false;
}

void dpi_pass_share(const dpi_pass *p, int64_t n, int64_t *begin, int64_t *end) {
    dpi_share(n, p->thread, p->n_threads, begin, end);
}

void dpi_pass_columns(const dpi_pass *p, int64_t n, int64_t *begin, int64_t *end) {
    dpi_pass_share(p, (n + DPI_Q8_BLOCK - 1) / DPI_Q8_BLOCK, begin, end);
    *begin *= DPI_Q8_BLOCK;
    *end = *end * DPI_Q8_BLOCK < n ? *end * DPI_Q8_BLOCK : n;
}

dpi_tiles dpi_pass_tiles(dpi_pass *p, int64_t n) {
    clear_own_share(p, p->n_tiled + 1);
    return dpi_tiles_begin(shares_of(p, p->n_tiled++), n, p->thread, p->n_threads);
}
