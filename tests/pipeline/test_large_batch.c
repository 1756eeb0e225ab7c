/* A batch of secret size may be large: equal records are in one batch under add/remove, and a
 * failure there would tell of it. */
#include "base/text.h"
#include "dpinfer/release.h"
#include "tests/pipeline/records_of.h"
#include "tests/support/tiny_model.h"

enum { N_RECORDS = 5000, N_TOKENS = 2, N_TEXTS = 2 };

/* All texts, so many at a time. Each has a public prompt, and slots for the largest batch, which
 * has all records. An event tells one thing of a pass: a token, or else that a prompt was read. */
static void draw_all(int32_t n_parallel) {
    const tiny_spec spec = tiny_default();
    void *image;
    dpi_release *release = NULL;
    dpi_release_options o;
    dpi_release_event e;
    int32_t n_drawn = 0, n_ends = 0, n_prompts = 0;
    dpi_model *model = tiny_open(&spec, 1, &image);
    static const char *texts[N_RECORDS];
    for (int i = 0; i < N_RECORDS; i++)
        texts[i] = "ab";
    dpi_records *records = records_of(texts, N_RECORDS);
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.n_tokens = N_TOKENS, o.n_texts = N_TEXTS, o.n_parallel = n_parallel;
    o.batch = 8;
    o.session.n_ctx = 64;
    o.method.rho = 1;
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.prompts.public_prompt = (dpi_bytes){"a", 1};
    o.prompts.private_prompt = (dpi_bytes){"a {reference}", 13};
    assert_ok(dpi_release_open(&o, &release, ERR));
    do {
        assert_ok(dpi_release_advance(release, &e, ERR));
        n_prompts += e.type == DPI_EVENT_PROMPT;
        n_drawn += e.type == DPI_EVENT_TOKEN;
        n_ends += e.type == DPI_EVENT_END;
    } while (e.type != DPI_EVENT_NONE);
    assert_int_equal(n_ends, N_TEXTS);
    assert_in_range(n_drawn, N_TEXTS, N_TEXTS * N_TOKENS);
    if (n_parallel == 1)
        assert_int_equal(n_prompts, N_TEXTS * (1 + N_RECORDS));
    else
        assert_in_range(n_prompts, N_TEXTS * (1 + N_RECORDS) - n_drawn - n_ends,
                        N_TEXTS * (1 + N_RECORDS));
    dpi_release_free(release);
    dpi_records_close(records);
    dpi_model_close(model);
    free(image);
}

TEST(test_equal_records) { draw_all(1); }

TEST(test_texts_side_by_side) { draw_all(N_TEXTS); }

/* A batch for which there are no sequences is refused, and how many records it has is not told. */
TEST(test_too_many) {
    enum { N_UNITS = 16400, PER_UNIT = 64 };
    const tiny_spec spec = tiny_default();
    void *image;
    dpi_text rows = {0};
    dpi_records *records;
    dpi_records_options ro;
    dpi_release *release;
    dpi_release_options o;
    dpi_model *model = tiny_open(&spec, 1, &image);
    for (int i = 0; i < N_UNITS; i++)
        dpi_text_add(&rows, "{\"text\":\"a\",\"who\":%d}\n", i);
    dpi_records_options_init(&ro);
    ro.unit_field = "who";
    assert_ok(
        dpi_records_open_buffer(rows.data, rows.n_bytes, DPI_RECORD_LINE, &ro, &records, ERR));
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.n_tokens = N_TOKENS, o.n_texts = 1, o.batch = 8, o.session.n_ctx = 64;
    o.method.rho = 1, o.method.max_per_unit = PER_UNIT;
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    assert_ok(dpi_release_open(&o, &release, ERR));
    assert_error(dpi_release_begin(release, ERR), LIMIT, "a batch has more than 1048576 records");
    dpi_release_free(release);
    dpi_records_close(records);
    free(rows.data);
    dpi_model_close(model);
    free(image);
}
