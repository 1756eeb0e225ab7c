/* probe_journal.c - a release that ends and goes on, see probes.h. Real files, as
 * tests/pipeline/journal/ has them. */
#include "tests/mutants/probes.h"

#include <unistd.h>

#include "dp/methods/sampler.h"
#include "pipeline/release/release.h"

enum { N_RECORDS = 24, N_TEXTS = 8, N_TOKENS = 64 };

/* The texts of the records, of which one may be another, in N_UNITS units of two: neighbours in the
 * file, or, if moved, those that are 12 apart. */
static void set_records(bool changed, const char *unit_field, bool moved) {
    enum { N_UNITS = N_RECORDS / 2 };
    char lines[N_RECORDS * 40];
    size_t n = 0;
    for (int i = 0; i < N_RECORDS; i++)
        n += (size_t)snprintf(lines + n, sizeof lines - n,
                              "{\"text\": \"%c%c %d\", \"id\": \"u%d\"}\n",
                              "AB"[changed && i == 20], 'a' + i, i, moved ? i % N_UNITS : i / 2);
    job_records(lines, unit_field);
}

/* A job of this name begins, or goes on. */
static void set_job(const char *name) {
    snprintf(job.folder, sizeof job.folder, "%s/%s", folder, name);
}

static void set_options(void) {
    job_make();
    job.o.n_texts = N_TEXTS, job.o.n_tokens = N_TOKENS;
    job.o.method.rho = .1, job.o.seeded = 0;
    set_records(false, NULL, false);
}

/* What was told is told again; and nothing is told before the disk has it (job_advance). A text
 * that is over by then shows nothing of the first: so some jobs. */
static void check_told(void) {
    told first, second;
    for (int round = 0; round < 8; round++) {
        set_job((const char[]){'t', (char)('0' + round), '\0'});
        job.every = round == 0 ? 1000 : 1;
        assert_ok(job_run(5, &first));
        job.every = 1;
        assert_ok(job_run(12, &second));
        assert_true(second.n_all >= first.n_all);
        assert_begins(&first, &second);
    }
}

/* Of the job some tokens are told: it does not go on. */
static void hold_changed(const char *fault) {
    told t;
    hold(job_run(80, &t) != DPI_STATUS_OK && t.n_all == 0, fault);
}

/* The file of tokens with a part that is missing: its end, or what the disk had. */
static void check_damage(void) {
    const char *at = path_in(job.folder, "tokens");
    size_t n;
    char *all = read_file(at, &n), *other = malloc(n);
    memcpy(other, all, n);
    write_file(at, all, 4096 + 32 * 5);
    hold_changed("a file of tokens that has lost its end is accepted");
    memset(other + 4096 + 32 * 2, 0, 32);
    write_file(at, other, n);
    hold_changed("a token that the disk has lost is drawn again");
    write_file(at, all, n);
    free(all);
    free(other);
}

static void check_refusals(void) {
    told t;
    set_job("changed");
    assert_ok(job_run(5, &t));
    assert_ok(job_run(60, &t));
    job_flip_model();
    hold_changed("a job goes on with another model");
    job_flip_model();
    check_damage();
    set_records(true, NULL, false);
    hold_changed("a job goes on with another record");
    set_records(false, NULL, false);
    job.o.method.rho = .2;
    hold_changed("a job goes on with another budget");
}

/* A job does not go on with the same records under other unit IDs: a unit would be in two texts. */
static void check_units(void) {
    told t;
    set_job("units");
    job.o.n_texts = 4, job.o.method.max_per_unit = 2;
    set_records(false, "id", false);
    assert_ok(job_run(5, &t));
    assert_ok(job_run(8, &t));
    set_records(false, "id", true);
    hold_changed("a job goes on with other units of the same records");
}

/* A file of the job is the same before and after it goes on. */
static void check_kept(const char *name, const char *file) {
    told t;
    size_t n[2];
    set_job(name);
    const char *at = path_in(job.folder, file);
    assert_ok(job_run(5, &t));
    hold(access(at, R_OK) == 0, "what was drawn is not kept");
    char *before = read_file(at, &n[0]);
    assert_ok(job_run(-1, &t));
    char *after = read_file(at, &n[1]);
    hold(n[0] == n[1] && memcmp(before, after, n[0]) == 0, "what was drawn is drawn again");
    free(before);
    free(after);
}

/* Which sequences of tokens the journal holds says nothing of batches: the release's own file does.
 * With the system's random bits batches that are drawn again are others. */
static void check_batches(void) {
    job.o.method.subsample = .5, job.o.method.rho = 0, job.o.method.epsilon = 5;
    check_kept("drawn", "batches");
}

/* Texts of each label, by a histogram with much noise. */
static void check_shares(void) {
    static const char *const labels[] = {"a", "b", "c"};
    dpi_records *records =
        make_records("labels.csv", "label,text\na,one\nb,two\nc,three\nc,four\n", NULL, "label");
    job.o.records = records, job.o.n_labels = 3, job.o.label_names = labels;
    job.o.histogram_rho = .0001, job.o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    for (int i = 0; i < 4; i++)
        check_kept((const char[]){'s', (char)('0' + i), '\0'}, "shares");
}

/* Shards with a journal each put each record into the same batch. */
static void check_shards(void) {
    static const uint8_t key[DPI_RELEASE_KEY_BYTES] = {7};
    int32_t batches[2][N_RECORDS];
    job.o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    job.o.n_shards = 2, job.o.key = key;
    memset(batches, 0xff, sizeof batches);
    for (job.o.shard = 0; job.o.shard < 2; job.o.shard++) {
        process p;
        set_job(job.o.shard ? "shard1" : "shard0");
        assert_ok(job_start(&p));
        assert_ok(dpi_release_begin(p.release, ERR));
        for (int32_t t = 0; t < N_TEXTS; t++) {
            dpi_batch batch;
            dpi_partition_batch(p.release->source.partition, t, &batch);
            for (size_t i = 0; i < batch.n_records; i++)
                batches[job.o.shard][batch.records[i]] = t;
        }
        job_stop(&p);
    }
    hold(memcmp(batches[0], batches[1], sizeof batches[0]) == 0,
         "shards with journals have batches of their own");
}

/* It pays once, and goes on with the ledger that it has paid to. */
static void check_charge(void) {
    told t;
    set_job("paid");
    make_ledger(DPI_SCOPE_DATASET);
    job.o.dataset = "letters", job.o.ledger = the_ledger;
    assert_ok(job_run(5, &t));
    assert_ok(open_ledger(path_in(folder, "other.ledger"), CREATE, &job.o.ledger));
    dpi_ledger *own = the_ledger;
    the_ledger = job.o.ledger;
    add_dataset("letters", 5, 1e-5, DPI_SCOPE_DATASET);
    hold_changed("a job goes on without its charge");
    close_ledger();
    the_ledger = job.o.ledger = own;
    assert_ok(job_run(-1, &t));
    const dpi_dataset_info info = info_of("letters");
    hold(info.n_charges == 1 && info.charged > 0,
         "a job that goes on is charged again, or not at all");
}

/* ---- The sampler of a text that goes on ------------------------------------------------------ */

/* A text with two private tokens has no third one, wherever it was stopped. */
static void check_spent(void) {
    enum { V = 64, REF = 2 };
    dpi_sampler_options o = ink_options(V, REF, 4, 1, 1);
    float logits[V] = {0};
    const float *references[REF] = {logits, logits};
    const int32_t *ids;
    int32_t n_ids, token;
    o.pace = DPI_PACE_TOP, o.pace_theta = 1, o.pace_tokens = 2;
    dpi_sampler *s = open_sampler(&o);
    assert_ok(dpi_sampler_begin(s, ERR));
    assert_ok(dpi_sampler_recall(s, logits, references, 3, ERR));
    assert_ok(dpi_sampler_recall(s, logits, references, 5, ERR));
    assert_ok(dpi_sampler_candidates(s, logits, &ids, &n_ids, ERR));
    hold(ids && n_ids == 0 && dpi_sampler_n_private(s) == 2, "what a text has spent is forgotten");
    assert_ok(dpi_sampler_step(s, logits, references, &token, ERR));
    assert_int_equal(dpi_sampler_tokens_left(s), 1);
    dpi_sampler_free(s);
}

/* Under the filter a record that has spent its budget adds nothing, wherever the text stopped. */
static void check_spent_of_record(void) {
    enum { V = 64, REF = 2, N = 40 };
    dpi_sampler_options o = ink_options(V, REF, N, 1, 1);
    float logits[V] = {0}, loud[V];
    const float *references[REF] = {loud, loud};
    dpi_distribution d;
    for (int y = 0; y < V; y++)
        loud[y] = y % 2 ? 500 : -500;
    o.accountant = DPI_ACCOUNTANT_FILTER;
    dpi_sampler *s = open_sampler(&o);
    assert_ok(dpi_sampler_begin(s, ERR));
    for (int k = 0; k < 2; k++) { /* both ends of the clip range: N / 4 steps spend all */
        bool adds = false;
        assert_ok(dpi_sampler_distribution(s, logits, references, &d, ERR));
        for (int64_t i = 0; i < d.n_support; i++)
            adds |= d.sum[i] != 0;
        hold(adds == (k == 0), k ? "what a record has spent is forgotten" : "no record adds");
        for (int i = 0; i < N / 2; i++)
            assert_ok(dpi_sampler_recall(s, logits, references, 1, ERR));
    }
    dpi_sampler_free(s);
}

TEST(journal) {
    static void (*const checks[])(void) = {
        check_told,   check_refusals, check_units, check_charge,          check_shards,
        check_shares, check_batches,  check_spent, check_spent_of_record,
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        set_options();
        checks[i]();
    }
}
