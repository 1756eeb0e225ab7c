/* release_texts.c - see release_texts.h. */
#include "tests/pipeline/release_texts.h"

dpi_model *model;
dpi_records *documents;

dpi_release_options options_of(const uint64_t *seed) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = documents;
    o.batch = 8, o.n_texts = 2, o.n_tokens = N_TOKENS;
    o.method.rho = 20;
    o.session.n_threads = 1;
    o.prompts.max_reference_tokens = MAX_REF_TOKENS;
    if (seed)
        o.seeded = 1, o.seed = *seed;
    return o;
}

dpi_release *open_release(const dpi_release_options *o) {
    dpi_release *release = NULL;
    assert_ok(dpi_release_open(o, &release, ERR));
    return release;
}

/* What `run` writes for a text that is over, behind `to`; returns its end. */
static char *write_text(const dpi_release *release, const dpi_release_event *e, bool as_line,
                        const char *text, size_t n_bytes, char *to) {
    char *line;
    size_t n_line;
    if (as_line) {
        assert_ok(dpi_release_line(release, e->index, text, n_bytes, e->n_drawn, e->end, &line,
                                   &n_line, ERR));
        assert_int_equal(strlen(line), n_line);
        to += sprintf(to, "%s\n", line);
        free(line);
        return to;
    }
    const bool ended = n_bytes > 0 && text[n_bytes - 1] == '\n';
    return to +
           sprintf(to, "%s%.*s%s", e->index > 0 ? "\n" : "", (int)n_bytes, text, ended ? "" : "\n");
}

void draw_texts(dpi_release *release, bool as_lines, char *texts) {
    static char text[TEXT_BYTES];
    const dpi_run *claim = dpi_release_run(release);
    dpi_release_event e = {0};
    int32_t n_drawn = 0, n_read = 0, n_ends = 0, reading = -1;
    size_t n = 0;
    for (;;) {
        assert_ok(dpi_release_advance(release, &e, ERR));
        if (e.type == DPI_EVENT_NONE)
            break;
        assert_true(e.index == n_ends || (e.type == DPI_EVENT_PROMPT && e.index > n_ends));
        memcpy(text + n, e.text, e.n_bytes);
        n += e.n_bytes;
        if (e.type == DPI_EVENT_PROMPT && !dpi_run_is_assigned(claim)) {
            n_read = e.index > reading ? 0 : n_read; /* one text reads at a time */
            reading = e.index;
            assert_in_range(e.n_read, n_read + 1, e.n_prompts);
            n_read = e.n_read;
        } else if (e.type == DPI_EVENT_PROMPT) { /* the size of a batch is secret */
            assert_true(e.n_read == 0 && e.n_prompts == 0);
        } else if (e.type == DPI_EVENT_TOKEN) {
            assert_int_equal(e.n_drawn, ++n_drawn);
        } else {
            assert_int_equal(e.type, DPI_EVENT_END);
            assert_int_equal(e.n_drawn, n_drawn);
            assert_true(e.end == DPI_END_EOG || n_drawn == claim->method.n_tokens);
            texts = write_text(release, &e, as_lines, text, n, texts);
            n_ends++;
            n_drawn = 0;
            n = 0;
        }
    }
    *texts = '\0';
    assert_int_equal(n_ends, claim->n_texts);
    dpi_release_free(release);
}

void open_documents(void) {
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    assert_ok(dpi_records_open(DPI_DOCUMENTS, NULL, &documents, ERR));
}

void close_documents(void) {
    dpi_records_close(documents);
    dpi_model_close(model);
}
