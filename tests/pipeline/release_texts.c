/* release_texts.c - see release_texts.h. */
#include "tests/pipeline/release_texts.h"

dpi_model *model;
dpi_records *documents;

dpi_release_options options_of(const uint64_t *seed) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model;
    o.records = documents;
    o.n_tokens = N_TOKENS;
    o.batch = 8;
    o.n_texts = 2;
    o.method.rho = 20;
    if (seed) {
        o.seeded = 1;
        o.seed = *seed;
    }
    return o;
}

dpi_release *open_release(const dpi_release_options *o) {
    dpi_release *release = NULL;
    dpi_error err;
    assert_ok(dpi_release_open(o, &release, &err), &err);
    return release;
}

void draw_texts(dpi_release *release, char *texts) {
    const dpi_claim *claim = dpi_release_claim(release);
    dpi_release_event e = {0};
    dpi_error err;
    int32_t n_drawn = 0, n_read = 0, n_ends = 0, reading = -1;
    size_t n = 0;
    for (;;) {
        assert_ok(dpi_release_advance(release, &e, &err), &err);
        if (e.type == DPI_EVENT_NONE)
            break;
        assert_true(e.index == n_ends || (e.type == DPI_EVENT_PROMPT && e.index > n_ends));
        if (e.type == DPI_EVENT_PROMPT && !dpi_claim_is_assigned(claim)) {
            n_read = e.index > reading ? 0 : n_read; /* one text reads at a time */
            reading = e.index;
            assert_in_range(e.n_read, n_read + 1, e.n_prompts);
            n_read = e.n_read;
        } else if (e.type == DPI_EVENT_PROMPT) { /* the size of a batch is secret */
            assert_int_equal(e.n_read, 0);
            assert_int_equal(e.n_prompts, 0);
        } else if (e.type == DPI_EVENT_TOKEN) {
            assert_int_equal(e.n_drawn, ++n_drawn);
        } else {
            assert_int_equal(e.type, DPI_EVENT_END);
            assert_int_equal(e.n_drawn, n_drawn);
            assert_true(e.end == DPI_END_EOG || n_drawn == claim->method.n_tokens);
        }
        if (n_drawn == 1 && n_ends > 0 && e.type == DPI_EVENT_TOKEN)
            texts[n++] = '\n';
        memcpy(texts + n, e.text, e.n_bytes);
        n += e.n_bytes;
        if (e.type != DPI_EVENT_END)
            continue;
        if (n == 0 || texts[n - 1] != '\n')
            texts[n++] = '\n';
        n_ends++;
        n_drawn = 0;
    }
    texts[n] = '\0';
    assert_int_equal(n_ends, claim->n_texts);
    dpi_release_free(release);
}

int open_documents(void **state) {
    (void)state;
    dpi_error err;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err), &err);
    assert_ok(dpi_records_open(DPI_DOCUMENTS, NULL, &documents, &err), &err);
    return 0;
}

int close_documents(void **state) {
    (void)state;
    dpi_records_close(documents);
    dpi_model_close(model);
    return 0;
}
