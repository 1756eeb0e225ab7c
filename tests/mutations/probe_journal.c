/* probe_journal.c - see probe_journal.h. Real files, as tests/pipeline/journal/ has them. */
#include "tests/mutations/probe_journal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dp/methods/sampler.h"
#include "pipeline/release/release.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { N_RECORDS = 24, N_TEXTS = 8, N_TOKENS = 64 };

typedef struct world {
    char folder[300], model_path[300], job[320];
    dpi_model *model;
    dpi_records *records;
    dpi_release_options o;
} world;

static const char *open_records(world *w, bool changed) {
    char texts[N_RECORDS][16];
    const char *pointers[N_RECORDS];
    size_t n_bytes[N_RECORDS];
    for (int i = 0; i < N_RECORDS; i++) {
        n_bytes[i] = (size_t)snprintf(texts[i], sizeof texts[i], "%c%c %d",
                                      "AB"[changed && i == 20], 'a' + i, i);
        pointers[i] = texts[i];
    }
    dpi_records_close(w->records);
    w->records = NULL;
    if (dpi_records_create(pointers, n_bytes, N_RECORDS, &w->records, NULL) != DPI_STATUS_OK)
        return "records are refused";
    w->o.records = w->records;
    return NULL;
}

static const char *make(world *w, const char *folder) {
    const tiny_spec spec = tiny_default();
    void *image;
    size_t n;
    *w = (world){.model = NULL};
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    snprintf(w->model_path, sizeof w->model_path, "%s/m.gguf", folder);
    tiny_build(&spec, 1, &image, &n);
    write_file(w->model_path, image, n);
    free(image);
    if (dpi_model_open(w->model_path, NULL, &w->model, NULL) != DPI_STATUS_OK)
        return "the model is refused";
    dpi_release_options_init(&w->o);
    w->o.model = w->model;
    w->o.model_path = w->model_path;
    w->o.batch = 3;
    w->o.n_texts = N_TEXTS;
    w->o.n_tokens = N_TOKENS;
    w->o.session.n_threads = 1;
    w->o.n_parallel = 1;
    w->o.prompts.chat = DPI_CHAT_NONE;
    w->o.method.rho = .1;
    w->o.method.delta = 1e-3;
    return open_records(w, false);
}

/* The job `name` until n tokens are told (-1: all), then everything ends. *n_told tokens were told
 * when the disk did not have them. */
static dpi_status run_job(world *w, const char *name, bool create, int32_t every, int32_t n,
                          int32_t token[N_TEXTS * N_TOKENS], int32_t *n_told, bool *early) {
    dpi_journal_options options;
    dpi_journal *journal = NULL;
    dpi_release *release = NULL;
    dpi_release_event e = {.type = DPI_EVENT_PROMPT};
    snprintf(w->job, sizeof w->job, "%s/%s", w->folder, name);
    dpi_journal_options_init(&options);
    options.create = create;
    options.every = every;
    dpi_status status = dpi_journal_open(w->job, &options, &journal, NULL);
    w->o.journal = journal;
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&w->o, &release, NULL);
    *n_told = 0;
    *early = false;
    while (status == DPI_STATUS_OK && e.type != DPI_EVENT_NONE && (n < 0 || *n_told < n)) {
        status = dpi_release_advance(release, &e, NULL);
        if (status != DPI_STATUS_OK || e.type != DPI_EVENT_TOKEN)
            continue;
        if (*n_told < N_TEXTS * N_TOKENS)
            token[*n_told] = e.token;
        *early |= dpi_journal_durable(journal) < ++*n_told;
    }
    dpi_release_free(release);
    dpi_journal_close(journal);
    return status;
}

/* What was told is told again; and nothing is told before the disk has it. A text that is over by
 * then shows nothing of the first: so some jobs. */
static const char *check_told(world *w) {
    int32_t first[N_TEXTS * N_TOKENS], second[N_TEXTS * N_TOKENS], n, m;
    bool early;
    for (int round = 0; round < 8; round++) {
        char name[16];
        snprintf(name, sizeof name, "told%d", round);
        if (run_job(w, name, true, round == 0 ? 1000 : 1, 5, first, &n, &early) != DPI_STATUS_OK)
            return "a job is refused";
        if (early)
            return "a token is told before the disk has it";
        if (run_job(w, name, false, 1, 12, second, &m, &early) != DPI_STATUS_OK)
            return "a job does not go on";
        if (m < n || memcmp(first, second, (size_t)n * sizeof *first) != 0)
            return "a token that was told is drawn again";
    }
    return NULL;
}

/* The job `name`, of which some tokens are told, does not go on with `what` changed. */
static const char *check_changed(world *w, const char *name, const char *what) {
    int32_t token[N_TEXTS * N_TOKENS], n;
    bool early;
    const dpi_status status = run_job(w, name, false, 1, 80, token, &n, &early);
    return status == DPI_STATUS_OK || n > 0 ? what : NULL;
}

static const char *check_other_model(world *w) {
    size_t n;
    char *image = read_file(w->model_path, &n);
    image[n - 1] ^= 1;
    write_file(w->model_path, image, n);
    const char *fault = check_changed(w, "changed", "a job goes on with another model");
    image[n - 1] ^= 1;
    write_file(w->model_path, image, n);
    free(image);
    return fault;
}

/* The file of tokens with a part that is missing: its end, or what the disk had. */
static const char *check_damage(world *w) {
    char path[340];
    size_t n;
    const char *fault = NULL;
    snprintf(path, sizeof path, "%s/tokens", w->job);
    char *all = read_file(path, &n), *other = malloc(n);
    memcpy(other, all, n);
    write_file(path, all, 4096 + 32 * 5);
    fault = check_changed(w, "changed", "a file of tokens that has lost its end is accepted");
    memset(other + 4096 + 32 * 2, 0, 32);
    write_file(path, other, n);
    if (!fault)
        fault = check_changed(w, "changed", "a token that the disk has lost is drawn again");
    write_file(path, all, n);
    free(all);
    free(other);
    return fault;
}

static const char *check_refusals(world *w) {
    int32_t token[N_TEXTS * N_TOKENS], n;
    bool early;
    const dpi_release_options o = w->o;
    if (run_job(w, "changed", true, 1, 5, token, &n, &early) != DPI_STATUS_OK ||
        run_job(w, "changed", false, 1, 60, token, &n, &early) != DPI_STATUS_OK)
        return "a job is refused";
    const char *fault = check_other_model(w);
    if (!fault)
        fault = check_damage(w);
    if (!fault)
        fault = open_records(w, true);
    if (!fault)
        fault = check_changed(w, "changed", "a job goes on with another record");
    const char *closed = open_records(w, false);
    w->o.method.rho = .2;
    if (!fault)
        fault = closed ? closed : check_changed(w, "changed", "a job goes on with another budget");
    const dpi_records *records = w->o.records;
    w->o = o;
    w->o.records = records;
    return fault;
}

/* The same 24 records, two of each unit: neighbours in the file, or, if changed, those that are 12
 * apart. */
static const char *open_units(world *w, bool changed) {
    enum { N_UNITS = N_RECORDS / 2 };
    char path[340], rows[N_RECORDS * 16 + 16];
    dpi_records_options source;
    size_t n = (size_t)snprintf(rows, sizeof rows, "id,text\n");
    for (int i = 0; i < N_RECORDS; i++)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "u%d,%c %d\n",
                              changed ? i % N_UNITS : i / 2, 'a' + i, i);
    snprintf(path, sizeof path, "%s/units.csv", w->folder);
    write_file(path, rows, n);
    dpi_records_options_init(&source);
    source.unit_field = "id";
    dpi_records_close(w->records);
    w->records = NULL;
    w->o.records = NULL;
    if (dpi_records_open(path, &source, &w->records, NULL) != DPI_STATUS_OK)
        return "units are refused";
    w->o.records = w->records;
    return NULL;
}

/* A job does not go on with the same records under other unit IDs: a unit would be in two texts. */
static const char *check_units(world *w) {
    int32_t token[N_TEXTS * N_TOKENS], n;
    bool early;
    const dpi_release_options o = w->o;
    w->o.n_texts = 4;
    w->o.method.max_per_unit = 2;
    const char *fault = open_units(w, false);
    if (!fault && (run_job(w, "units", true, 1, 5, token, &n, &early) != DPI_STATUS_OK ||
                   run_job(w, "units", false, 1, 8, token, &n, &early) != DPI_STATUS_OK))
        fault = "a job of units is refused";
    if (!fault)
        fault = open_units(w, true);
    if (!fault)
        fault = check_changed(w, "units", "a job goes on with other units of the same records");
    w->o = o;
    const char *closed = open_records(w, false);
    return fault ? fault : closed;
}

/* A file of the job is the same before and after it goes on. */
static const char *check_kept(world *w, const char *name, const char *file) {
    char path[360];
    int32_t token[N_TEXTS * N_TOKENS], n;
    size_t n_bytes[2];
    bool early;
    if (run_job(w, name, true, 1, 5, token, &n, &early) != DPI_STATUS_OK)
        return "a job is refused";
    snprintf(path, sizeof path, "%s/%s", w->job, file);
    if (access(path, R_OK) != 0)
        return "what was drawn is not kept";
    char *before = read_file(path, &n_bytes[0]);
    const dpi_status status = run_job(w, name, false, 1, -1, token, &n, &early);
    char *after = read_file(path, &n_bytes[1]);
    const bool same = n_bytes[0] == n_bytes[1] && memcmp(before, after, n_bytes[0]) == 0;
    free(before);
    free(after);
    return status == DPI_STATUS_OK && same ? NULL : "what was drawn is drawn again";
}

/* Which sequences of tokens the journal holds says nothing of batches: the release's own file does.
 * With the system's random bits batches that are drawn again are others. */
static const char *check_batches(world *w) {
    w->o.method.subsample = .5;
    w->o.method.rho = 0;
    w->o.method.epsilon = 5;
    return check_kept(w, "drawn", "batches");
}

/* Texts of each label, by a histogram with much noise. */
static const char *check_shares(world *w) {
    static const char rows[] = "label,text\na,one\nb,two\nc,three\nc,four\n";
    static const char *const names[] = {"a", "b", "c"};
    char path[340];
    dpi_records_options source;
    dpi_records *records = NULL;
    const dpi_release_options o = w->o;
    snprintf(path, sizeof path, "%s/labels.csv", w->folder);
    write_file(path, rows, sizeof rows - 1);
    dpi_records_options_init(&source);
    source.label_field = "label";
    if (dpi_records_open(path, &source, &records, NULL) != DPI_STATUS_OK)
        return "labels are refused";
    w->o.records = records;
    w->o.n_labels = 3;
    w->o.label_names = names;
    w->o.histogram_rho = .0001;
    w->o.n_texts = N_TEXTS;
    w->o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    const char *fault = NULL;
    for (int i = 0; i < 4 && !fault; i++) {
        char name[16];
        snprintf(name, sizeof name, "shares%d", i);
        fault = check_kept(w, name, "shares");
    }
    w->o = o;
    dpi_records_close(records);
    return fault;
}

/* The batch of each record in a shard with a journal of its own. */
static dpi_status list_batches(const world *w, const char *name, int32_t shard,
                               int32_t batches[N_RECORDS]) {
    static const uint8_t key[DPI_RELEASE_KEY_BYTES] = {7};
    dpi_journal_options options;
    dpi_journal *journal = NULL;
    dpi_release *release = NULL;
    dpi_release_options o = w->o;
    char folder[340];
    snprintf(folder, sizeof folder, "%s/%s", w->folder, name);
    dpi_journal_options_init(&options);
    options.create = 1;
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.n_shards = 2;
    o.shard = shard;
    o.key = key;
    dpi_status status = dpi_journal_open(folder, &options, &journal, NULL);
    o.journal = journal;
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&o, &release, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_release_begin(release, NULL);
    for (int32_t t = 0; status == DPI_STATUS_OK && t < N_TEXTS; t++) {
        dpi_batch batch;
        dpi_partition_batch(release->partition, t, &batch);
        for (size_t i = 0; i < batch.n_records; i++)
            batches[batch.records[i]] = t;
    }
    dpi_release_free(release);
    dpi_journal_close(journal);
    return status;
}

static const char *check_shards(const world *w) {
    int32_t first[N_RECORDS], second[N_RECORDS];
    if (list_batches(w, "shard0", 0, first) != DPI_STATUS_OK ||
        list_batches(w, "shard1", 1, second) != DPI_STATUS_OK)
        return "a shard with a journal is refused";
    return memcmp(first, second, sizeof first) != 0
               ? "shards with journals have batches of their own"
               : NULL;
}

/* ---- The sampler of a text that goes on ------------------------------------------------------ */

/* A text with two private tokens has no third one, wherever it was stopped. */
static const char *check_spent(void) {
    enum { V = 64, REF = 2 };
    dpi_sampler_options o = ink_options(V, REF, 4, 1, 1);
    float logits[V] = {0};
    const float *references[REF] = {logits, logits};
    const int32_t *ids;
    int32_t n_ids = 0, token;
    o.pace = DPI_PACE_TOP;
    o.pace_theta = 1;
    o.pace_tokens = 2;
    dpi_sampler *s = open_sampler(&o);
    bool ok = dpi_sampler_begin(s, NULL) == DPI_STATUS_OK &&
              dpi_sampler_recall(s, logits, references, 3, NULL) == DPI_STATUS_OK &&
              dpi_sampler_recall(s, logits, references, 5, NULL) == DPI_STATUS_OK &&
              dpi_sampler_candidates(s, logits, &ids, &n_ids, NULL) == DPI_STATUS_OK;
    const bool is_free = ok && ids && n_ids == 0 && dpi_sampler_n_private(s) == 2;
    ok = ok && dpi_sampler_step(s, logits, references, &token, NULL) == DPI_STATUS_OK &&
         dpi_sampler_tokens_left(s) == 1;
    dpi_sampler_free(s);
    return !ok ? "a text does not go on" : !is_free ? "what a text has spent is forgotten" : NULL;
}

/* Under the filter a record that has spent its budget adds nothing, wherever the text stopped. */
static const char *check_spent_of_record(void) {
    enum { V = 64, REF = 2, N = 40 };
    dpi_sampler_options o = ink_options(V, REF, N, 1, 1);
    float logits[V] = {0}, loud[V];
    const float *references[REF] = {loud, loud};
    dpi_distribution d;
    bool adds[2] = {false, false}; /* at first, and at the end */
    for (int y = 0; y < V; y++)
        loud[y] = y % 2 ? 500 : -500;
    o.accountant = DPI_ACCOUNTANT_FILTER;
    dpi_sampler *s = open_sampler(&o);
    bool ok = dpi_sampler_begin(s, NULL) == DPI_STATUS_OK;
    for (int k = 0; k < 2 && ok; k++) { /* both ends of the clip range: N / 4 steps spend all */
        ok = dpi_sampler_distribution(s, logits, references, &d, NULL) == DPI_STATUS_OK;
        for (int64_t i = 0; ok && i < d.n_support; i++)
            adds[k] |= d.sum[i] != 0;
        for (int i = 0; i < N / 2 && ok; i++)
            ok = dpi_sampler_recall(s, logits, references, 1, NULL) == DPI_STATUS_OK;
    }
    dpi_sampler_free(s);
    return !ok || !adds[0] ? "a text does not go on"
           : adds[1]       ? "what a record has spent is forgotten"
                           : NULL;
}

/* ---- One charge ------------------------------------------------------------------------------ */

static const char *check_charge(world *w) {
    char path[340];
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_dataset_info info;
    dpi_ledger *ledger[2] = {NULL, NULL};
    const char *fault = NULL;
    int32_t token[N_TEXTS * N_TOKENS], n;
    bool early;
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    dpi_dataset_info_init(&info);
    options.create = 1;
    dataset.name = w->o.dataset = "letters";
    dataset.epsilon = 5;
    dataset.delta = 1e-5;
    for (int i = 0; i < 2 && !fault; i++) {
        snprintf(path, sizeof path, "%s/%d.ledger", w->folder, i);
        if (dpi_ledger_open(path, &options, &ledger[i], NULL) != DPI_STATUS_OK ||
            dpi_ledger_add(ledger[i], &dataset, NULL) != DPI_STATUS_OK)
            fault = "a ledger is refused";
    }
    w->o.ledger = ledger[0];
    if (!fault && run_job(w, "paid", true, 1, 5, token, &n, &early) != DPI_STATUS_OK)
        fault = "a job is refused";
    w->o.ledger = ledger[1];
    if (!fault && (run_job(w, "paid", false, 1, 8, token, &n, &early) == DPI_STATUS_OK || n > 0))
        fault = "a job goes on without its charge";
    w->o.ledger = ledger[0];
    if (!fault && (run_job(w, "paid", false, 1, -1, token, &n, &early) != DPI_STATUS_OK ||
                   dpi_ledger_info(ledger[0], "letters", &info, NULL) != DPI_STATUS_OK ||
                   info.n_charges != 1 || info.charged == 0))
        fault = "a job that goes on is charged again, or not at all";
    dpi_ledger_close(ledger[0]);
    dpi_ledger_close(ledger[1]);
    w->o.ledger = NULL;
    return fault;
}

const char *probe_journal(const dpi_model *model, const char *folder) {
    (void)model;
    world w;
    const char *fault = make(&w, folder);
    if (!fault)
        fault = check_told(&w);
    if (!fault)
        fault = check_refusals(&w);
    if (!fault)
        fault = check_units(&w);
    if (!fault)
        fault = check_spent();
    if (!fault)
        fault = check_spent_of_record();
    if (!fault)
        fault = check_charge(&w);
    if (!fault)
        fault = check_shards(&w);
    if (!fault)
        fault = check_shares(&w);
    if (!fault)
        fault = check_batches(&w);
    dpi_records_close(w.records);
    dpi_model_close(w.model);
    return fault;
}
