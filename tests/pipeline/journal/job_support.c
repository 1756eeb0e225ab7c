/* job_support.c - see job_support.h. */
#include "tests/pipeline/journal/job_support.h"

#include <sys/stat.h>

void job_records_open(job_bench *b, bool units) {
    dpi_records_options o;
    dpi_error err;
    dpi_records_options_init(&o);
    o.unit_field = units ? "who" : NULL;
    dpi_records_close(b->records);
    b->records = NULL;
    assert_ok(dpi_records_open(b->records_path, &o, &b->records, &err), &err);
    b->o.records = b->records;
}

void job_bench_make(job_bench *b) {
    static const char *const words[] = {"one", "two words", "a day", "garden", "rain", "sun"};
    const tiny_spec spec = tiny_default();
    char lines[2048];
    size_t n = 0, n_image;
    *b = (job_bench){.model = NULL};
    make_dir(b->root, sizeof b->root);
    snprintf(b->folder, sizeof b->folder, "%s/job", b->root);
    snprintf(b->model_path, sizeof b->model_path, "%s/m.gguf", b->root);
    snprintf(b->records_path, sizeof b->records_path, "%s/r.jsonl", b->root);
    void *image;
    tiny_build(&spec, 1, &image, &n_image);
    write_file(b->model_path, image, n_image);
    free(image);
    dpi_error err;
    assert_ok(dpi_model_open(b->model_path, NULL, &b->model, &err), &err);
    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(lines + n, sizeof lines - n,
                              "{\"text\": \"%s %d\", \"who\": \"p%d\"}\n", words[i % 6], i, i % 10);
    write_file(b->records_path, lines, n);
    dpi_release_options_init(&b->o);
    job_records_open(b, false);
    b->o.model = b->model;
    b->o.model_path = b->model_path;
    b->o.batch = 3;
    b->o.n_texts = JOB_TEXTS;
    b->o.n_tokens = JOB_TOKENS;
    b->o.session.n_threads = 1;
    b->o.n_parallel = 1;
    b->o.prompts.chat = DPI_CHAT_NONE;
    b->o.method.rho = 2;
    b->o.method.delta = 1e-3;
    b->o.seeded = 1;
    b->o.seed = 3;
}

void job_bench_remove(job_bench *b) {
    dpi_records_close(b->records);
    dpi_model_close(b->model);
    remove_dir(b->root);
}

dpi_status job_open(const job_bench *b, dpi_journal **journal, dpi_error *err) {
    dpi_journal_options o;
    char path[320];
    struct stat st;
    snprintf(path, sizeof path, "%s/job.json", b->folder);
    dpi_journal_options_init(&o);
    o.create = stat(path, &st) != 0;
    return dpi_journal_open(b->folder, &o, journal, err);
}

static void note(told *t, const dpi_release_event *e) {
    if (e->type != DPI_EVENT_TOKEN && e->type != DPI_EVENT_END)
        return;
    assert_in_range(e->index, 0, JOB_TEXTS - 1);
    size_t *n_bytes = &t->n_bytes[e->index];
    assert_true(*n_bytes + e->n_bytes <= sizeof t->bytes[0]);
    memcpy(t->bytes[e->index] + *n_bytes, e->text, e->n_bytes);
    *n_bytes += e->n_bytes;
    if (e->type == DPI_EVENT_END) {
        t->end[e->index] = e->end;
        assert_int_equal(e->n_drawn, t->n[e->index]);
        return;
    }
    assert_in_range(t->n[e->index], 0, JOB_TOKENS - 1);
    t->token[e->index][t->n[e->index]++] = e->token;
    assert_int_equal(e->n_drawn, t->n[e->index]);
    t->n_all++;
}

dpi_status job_advance(dpi_release *release, dpi_journal *journal, int32_t n, told *t,
                       dpi_error *err) {
    dpi_release_event e = {.type = DPI_EVENT_PROMPT};
    *t = (told){.n_all = 0};
    while (e.type != DPI_EVENT_NONE && (n < 0 || t->n_all < n)) {
        const dpi_status status = dpi_release_advance(release, &e, err);
        if (status != DPI_STATUS_OK)
            return status;
        note(t, &e);
        if (journal && dpi_journal_durable(journal) < t->n_all)
            fail_msg("token %d is told, and the disk has %d", t->n_all,
                     (int)dpi_journal_durable(journal));
    }
    return DPI_STATUS_OK;
}

void job_unbroken(const job_bench *b, told *t) {
    dpi_release_options o = b->o;
    dpi_release *release;
    dpi_error err;
    o.journal = NULL;
    assert_ok(dpi_release_open(&o, &release, &err), &err);
    assert_ok(job_advance(release, NULL, -1, t, &err), &err);
    dpi_release_free(release);
}

dpi_status job_run(const job_bench *b, int32_t n, told *t, dpi_error *err) {
    dpi_release_options o = b->o;
    dpi_release *release = NULL;
    dpi_journal *journal = NULL;
    *t = (told){.n_all = 0};
    dpi_status status = job_open(b, &journal, err);
    o.journal = journal;
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&o, &release, err);
    if (status == DPI_STATUS_OK)
        status = job_advance(release, journal, n, t, err);
    dpi_release_free(release);
    dpi_journal_close(journal);
    return status;
}

void assert_begins(const told *part, const told *all) {
    for (int i = 0; i < JOB_TEXTS; i++) {
        const bool over = part->end[i] == DPI_END_EOG || part->end[i] == DPI_END_LENGTH;
        assert_true(part->n[i] <= all->n[i]);
        assert_memory_equal(part->token[i], all->token[i], (size_t)part->n[i] * sizeof(int32_t));
        if (over)
            assert_int_equal(part->n[i], all->n[i]);
        if (over || part->end[i] == DPI_END_NONE) { /* a text that was cut has U+FFFD at its end */
            assert_true(part->n_bytes[i] <= all->n_bytes[i]);
            assert_memory_equal(part->bytes[i], all->bytes[i], part->n_bytes[i]);
        }
    }
}
