#include "tests/pipeline/journal/job_support.h"

#include <unistd.h>

job_bench job;

dpi_release_options small_release(const dpi_model *model, const dpi_records *records) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.session.n_threads = 1, o.prompts.chat = DPI_CHAT_NONE;
    o.method.delta = 1e-3;
    return o;
}

dpi_release *open_release(const dpi_release_options *o) {
    dpi_release *release = NULL;
    assert_ok(dpi_release_open(o, &release, ERR));
    return release;
}

/* Those that are open. */
static dpi_records **opened;
static size_t n_opened;

dpi_records *make_records(const char *name, const char *lines, const char *unit_field,
                          const char *label_field) {
    const char *at = path_in(folder, name);
    dpi_records_options o;
    if (lines)
        write_file(at, lines, strlen(lines));
    dpi_records_options_init(&o);
    o.unit_field = unit_field, o.label_field = label_field;
    opened = realloc(opened, (n_opened + 1) * sizeof *opened);
    assert_non_null(opened);
    assert_ok(dpi_records_open(at, &o, &opened[n_opened], ERR));
    return opened[n_opened++];
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

void job_records(const char *lines, const char *unit_field) {
    job.o.records = make_records("r.jsonl", lines, unit_field, NULL);
}

static void make_model(void) {
    const tiny_spec spec = tiny_default();
    void *image;
    size_t n;
    folder_make();
    snprintf(job.folder, sizeof job.folder, "%s/job", folder);
    snprintf(job.model_path, sizeof job.model_path, "%s/m.gguf", folder);
    tiny_build(&spec, 1, &image, &n);
    write_file(job.model_path, image, n);
    free(image);
    assert_ok(dpi_model_open(job.model_path, NULL, &job.model, ERR));
}

void job_make(void) {
    static const char *const words[] = {"one", "two words", "a day", "garden", "rain", "sun"};
    char lines[2048];
    size_t n = 0;
    if (!job.model)
        make_model();
    remove_dir(job.folder);
    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(lines + n, sizeof lines - n,
                              "{\"text\": \"%s %d\", \"who\": \"p%d\"}\n", words[i % 6], i, i % 10);
    job.o = small_release(job.model, NULL);
    job.o.model_path = job.model_path, job.o.n_parallel = 1;
    job.o.batch = 3, job.o.n_texts = 4, job.o.n_tokens = 8;
    job.o.method.rho = 2, job.o.seeded = 1, job.o.seed = 3;
    job_records(lines, NULL);
}

void job_remove(void) {
    while (n_opened > 0)
        dpi_records_close(opened[--n_opened]);
    free(opened);
    opened = NULL;
    dpi_model_close(job.model);
    job = (job_bench){.model = NULL};
    folder_remove();
}

void job_flip_model(void) {
    size_t n;
    char *image = read_file(job.model_path, &n);
    image[n - 1] ^= 1;
    write_file(job.model_path, image, n);
    free(image);
}

dpi_status job_start(process *p) {
    dpi_journal_options o;
    dpi_release_options release = job.o;
    dpi_journal_options_init(&o);
    o.create = access(path_in(job.folder, "job.json"), F_OK) != 0;
    o.every = job.every ? job.every : o.every;
    *p = (process){NULL, NULL};
    dpi_status status = dpi_journal_open(job.folder, &o, &p->journal, ERR);
    release.journal = p->journal;
    return status == DPI_STATUS_OK ? dpi_release_open(&release, &p->release, ERR) : status;
}

void job_stop(process *p) {
    dpi_release_free(p->release);
    dpi_journal_close(p->journal);
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
        assert_int_equal(t->end[e->index], DPI_END_NONE); /* once */
        t->end[e->index] = e->end;
    } else {
        assert_in_range(t->n[e->index], 0, JOB_TOKENS - 1);
        t->token[e->index][t->n[e->index]++] = e->token;
        t->n_all++;
    }
    assert_int_equal(e->n_drawn, t->n[e->index]);
}

dpi_status job_advance(const process *p, int32_t n, told *t) {
    dpi_release_event e = {.type = DPI_EVENT_PROMPT};
    *t = (told){.n_all = 0};
    while (e.type != DPI_EVENT_NONE && (n < 0 || t->n_all < n)) {
        const dpi_status status = dpi_release_advance(p->release, &e, ERR);
        if (status != DPI_STATUS_OK)
            return status;
        note(t, &e);
        if (p->journal && dpi_journal_durable(p->journal) < t->n_all)
            fail_msg("token %d is told, and the disk has %d", t->n_all,
                     (int)dpi_journal_durable(p->journal));
    }
    return DPI_STATUS_OK;
}

void job_unbroken(told *t) {
    process p = {.release = open_release(&job.o)};
    assert_ok(job_advance(&p, -1, t));
    job_stop(&p);
}

dpi_status job_run(int32_t n, told *t) {
    process p;
    *t = (told){.n_all = 0};
    dpi_status status = job_start(&p);
    if (status == DPI_STATUS_OK)
        status = job_advance(&p, n, t);
    job_stop(&p);
    return status;
}

void assert_begins(const told *part, const told *all) {
    for (int i = 0; i < JOB_TEXTS; i++) {
        const bool over = dpi_end_is_own(part->end[i]) || part->end[i] == DPI_END_LENGTH;
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
