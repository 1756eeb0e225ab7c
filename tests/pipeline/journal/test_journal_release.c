/* test_journal_release.c - releases that end anywhere and go on: the texts are those of one that
 * was never stopped, whatever the method keeps from token to token, and other inputs are refused.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "dpinfer/isa.h"
#include "pipeline/release/release.h"
#include "tests/engine/adapter_build.h"
#include "tests/pipeline/journal/job_support.h"

SETUP_EACH { job_make(); }
TEARDOWN_EACH { job_remove(); }

/* ---- The same texts -------------------------------------------------------------------------- */

static dpi_sampler_options *const m = &job.o.method;

static void set_zcdp(void) {}
static void set_parallel(void) { job.o.n_parallel = 3; }
static void set_center(void) { m->center = 1; }
static void set_zero_out(void) { m->adjacency = DPI_ADJACENCY_ZERO_OUT; }
static void set_br(void) { m->accountant = DPI_ACCOUNTANT_BR, m->rho = 0, m->epsilon = 5; }
/* Records that have spent their budget are null: what they have spent before the end counts. */
static void set_filter(void) { m->accountant = DPI_ACCOUNTANT_FILTER, m->rho = .02, m->clip = 8; }
/* After three private tokens a text goes on free. */
static void set_top(void) { m->pace = DPI_PACE_TOP, m->pace_theta = .9999, m->pace_tokens = 3; }
static void set_change(void) {
    m->pace = DPI_PACE_CHANGE, m->pace_theta = 1e-6, m->pace_tokens = 3;
}
static void set_share(void) { m->pace = DPI_PACE_SHARE, m->pace_share = 1; }
static void set_units(void) { job_records(NULL, "who"); }
static void set_add_remove(void) { m->adjacency = DPI_ADJACENCY_ADD_REMOVE; }
static void set_subsample(void) { m->subsample = .5, m->rho = 0, m->epsilon = 5; }
static void set_plain(void) { m->method = DPI_METHOD_PLAIN, job.o.batch = 0; }
/* Two stops come, in several tokens; one comes before the first word; one begins, and one begins
 * with what a text ends with. */
static dpi_wording *worded(void) {
    static const dpi_bytes stops[] = {{"tt(", 3}, {"aC", 2}, {"a<!", 3}, {"=W", 2}};
    static dpi_wording w;
    dpi_wording_init(&w);
    w.stops = stops, w.n_stops = 4, w.min_words = 1;
    w.answer = (dpi_bytes){"ab", 2}, w.keep_answer = 1;
    return &w;
}
static void set_worded(void) { job.o.wording = worded(); }
static void set_reference(void) { set_plain(), job.o.reference = 4; }
/* Prompts are made again of the texts of the round before, of which some are drawn and not told. */
static void set_released(void) { job.o.n_released = 1; }
static void set_rounds(void) { job.o.n_released = 2, job.o.n_parallel = 2, set_add_remove(); }

static const struct {
    const char *name;
    void (*set)(void);
} kinds[] = {
    {"zcdp", set_zcdp},
    {"parallel", set_parallel},
    {"center", set_center},
    {"zero-out", set_zero_out},
    {"br", set_br},
    {"filter", set_filter},
    {"pace top", set_top},
    {"pace change", set_change},
    {"pace share", set_share},
    {"units", set_units},
    {"add/remove", set_add_remove},
    {"subsample", set_subsample},
    {"plain", set_plain},
    {"plain, a record", set_reference},
    {"worded", set_worded},
    {"released", set_released},
    {"rounds of two", set_rounds},
};

/* Ends after n tokens, then after `more` that are new, and so on. */
static void check_ends(const told *all, int32_t n, int32_t more, const char *name) {
    told part;
    for (int32_t last = n;; last += more) {
        if (job_run(last, &part) != DPI_STATUS_OK)
            fail_msg("%s: %s", name, ERR->message);
        assert_begins(&part, all);
        if (part.n_all < last || part.n_all == all->n_all)
            break;
    }
    assert_ok(job_run(-1, &part));
    assert_int_equal(part.n_all, all->n_all);
    assert_begins(&part, all);
    assert_begins(all, &part);
    remove_dir(job.folder);
}

TEST(test_same_texts) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        told all;
        job_make();
        kinds[k].set();
        job_unbroken(&all);
        assert_true(all.n_all > 8);
        for (int i = 0, n_stopped = 0; job.o.wording && i <= job.o.n_texts; i++) {
            assert_true(i < job.o.n_texts || n_stopped > 0);
            n_stopped += all.end[i] == DPI_END_STOP;
        }
        check_ends(&all, 0, 3, kinds[k].name);
        check_ends(&all, 5, 7, kinds[k].name);
        check_ends(&all, all.n_all, 1, kinds[k].name);
    }
}

/* The records of each batch. */
typedef struct batches {
    size_t records[4][16], n[4];
} batches;

static void list_batches(const dpi_release *r, batches *found) {
    for (int32_t i = 0; i < 4; i++) {
        dpi_batch batch;
        dpi_partition_batch(r->source.partition, i, &batch);
        found->n[i] = batch.n_records;
        memcpy(found->records[i], batch.records, batch.n_records * sizeof *batch.records);
    }
}

/* With the system's random bits: what was told stays, and a record stays in its batch. 16 records
 * fall into the same batches by chance with 4^-16. */
TEST(test_batches_stay) {
    for (int round = 0; round < 8; round++) {
        batches found[2];
        told part[2];
        job_make();
        (round % 2 ? set_subsample : set_add_remove)();
        job.o.seeded = 0;
        memset(found, 0, sizeof found);
        for (int i = 0; i < 2; i++) {
            process p;
            assert_ok(job_start(&p));
            assert_ok(job_advance(&p, i ? -1 : 11, &part[i]));
            list_batches(p.release, &found[i]);
            job_stop(&p);
        }
        assert_begins(&part[0], &part[1]);
        assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    }
}

/* The files of a folder, into a new one. */
static void copy_folder(const char *from, const char *to) {
    struct stat st;
    assert_int_equal(stat(from, &st) | mkdir(to, st.st_mode & 0777), 0);
    DIR *d = opendir(from);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t n;
        if (stat(path_in(from, e->d_name), &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        char *bytes = read_file(path_in(from, e->d_name), &n);
        write_file(path_in(to, e->d_name), bytes, n);
        assert_int_equal(chmod(path_in(to, e->d_name), st.st_mode & 0777), 0);
        free(bytes);
    }
    closedir(d);
}

/* Where nothing was told, bits are new: twice from one place, two releases. What was told stays, to
 * the last token. */
TEST(test_new_bits) {
    told part, first, second;
    job.o.seeded = 0;
    assert_ok(job_run(3, &part));
    char *kept = strdup(path_in(folder, "kept"));
    copy_folder(job.folder, kept);
    assert_ok(job_run(-1, &first));
    assert_begins(&part, &first);
    assert_ok(job_run(-1, &second)); /* it is over: the same */
    assert_memory_equal(first.token, second.token, sizeof first.token);
    remove_dir(job.folder);
    assert_int_equal(rename(kept, job.folder), 0);
    assert_ok(job_run(-1, &second));
    assert_begins(&part, &second);
    assert_memory_not_equal(first.token, second.token, sizeof first.token);
    free(kept);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_refused_job(const char *part) {
    told t;
    assert_error(job_run(-1, &t), STATE, part);
    assert_int_equal(t.n_all, 0);
}

TEST(test_changed) {
    told t;
    size_t n;
    job.o.seeded = 0;
    assert_ok(job_run(9, &t));
    const dpi_release_options o = job.o;
#define CHANGED(field, value, part)                                                                \
    job.o.field = value;                                                                           \
    assert_refused_job(part);                                                                      \
    job.o = o
    CHANGED(n_tokens, 6, "parameters.mechanisms[0].T was 8 when it began, and is 6");
    CHANGED(top_k, 7, "parameters.mechanisms[0].top_k was");
    CHANGED(batch, 4, "parameters.mechanisms[0].B was");
    CHANGED(n_released, 2, "parameters.released was");
    CHANGED(method.rho, 3, "parameters.mechanisms[0].budget_rho was");
    CHANGED(method.tau, 1.5, "parameters.mechanisms[0].tau was");
    CHANGED(session.kv_type, DPI_KV_F32, "engine.kv_type was");
    CHANGED(session.exact, 1, "engine.exact was");
    CHANGED(session.n_ctx, 100, "engine.n_ctx was");
    if (dpi_isa_best() != DPI_ISA_REF) {
        CHANGED(session.isa, DPI_ISA_REF, "engine.isa was");
    }
    CHANGED(seeded, 1, "parameters.randomness was");
    CHANGED(prompts.public_prompt, ((dpi_bytes){"Write", 5}), "prompts was");
    CHANGED(prompts.max_reference_tokens, 2, "prompts was");
    CHANGED(wording, worded(), "wording was \"\" when it began");
#undef CHANGED
    job_flip_model();
    assert_refused_job("model[0].sha256 was");
    job_flip_model();
    /* Records, by one byte, and in another order. */
    static const char changed[] = "the records are not those that it began with";
    char *lines = read_file(path_in(folder, "r.jsonl"), &n), *at = strstr(lines, "garden");
    at[0] = 'G';
    job_records(lines, NULL);
    assert_refused_job(changed);
    at[0] = 'g';
    const size_t line = strcspn(lines, "\n") + 1;
    char *turned = calloc(n + 1, 1);
    memcpy(turned, lines + line, n - line);
    memcpy(turned + n - line, lines, line);
    job_records(turned, NULL);
    assert_refused_job(changed);
    job_records(lines, NULL);
    free(turned);
    free(lines);
    assert_ok(job_run(-1, &t));
}

/* An adapter is a part of the model. */
TEST(test_other_adapter) {
    told t;
    dpi_model_options o;
    dpi_model *adapted_models[2];
    const tiny_spec spec = tiny_default();
    dpi_model_options_init(&o);
    o.adapter = path_in(folder, "adapter.gguf");
    job.o.seeded = 0;
    for (int i = 0; i < 2; i++) {
        write_adapter(o.adapter, &spec, ALL_PARTS, i ? 3 : 2);
        assert_ok(dpi_model_open(job.model_path, &o, &adapted_models[i], ERR));
        job.o.model = adapted_models[i];
        if (i == 0)
            assert_ok(job_run(9, &t));
        else
            assert_refused_job("model[1].sha256 was");
    }
    job.o.model = job.model;
    assert_refused_job("model[1] was");
    dpi_model_close(adapted_models[0]), dpi_model_close(adapted_models[1]);
}

/* And so is what it is multiplied with. */
TEST(test_other_scale) {
    told t;
    dpi_model_options o;
    const tiny_spec spec = tiny_default();
    dpi_model_options_init(&o);
    o.adapter = path_in(folder, "adapter.gguf");
    write_adapter(o.adapter, &spec, ALL_PARTS, 2);
    job.o.seeded = 0;
    for (int i = 0; i < 2; i++) {
        dpi_model *model;
        o.adapter_scale = i ? .5f : 1;
        assert_ok(dpi_model_open(job.model_path, &o, &model, ERR));
        job.o.model = model;
        if (i == 0)
            assert_ok(job_run(9, &t));
        else
            assert_refused_job("model[1].scale was");
        job.o.model = job.model;
        dpi_model_close(model);
    }
}

/* With a seed the bits are those of that seed. */
TEST(test_other_seed) {
    told t;
    assert_ok(job_run(5, &t));
    job.o.seed = 4;
    assert_refused_job("seed was \"3\" when it began, and is \"4\"");
}

/* Whose a record is and which label it has says which text it is in: both stay what they were, and
 * so do the numbers of texts. */
TEST(test_other_labels) {
    static const char *const names[] = {"x", "y"};
    static const int32_t texts[] = {2, 2}, others[] = {3, 1};
    static const char *const rows[] = {
        "who,kind,text\na,x,one\nb,y,two\na,x,more\nc,y,last\n",
        "who,kind,text\na,x,one\nb,y,two\na,x,more\nc,x,last\n", /* another label */
        "who,kind,text\na,x,one\nb,y,two\na,x,more\nd,y,last\n", /* another ID */
        "who,kind,text\na,x,one\nb,y,two\nb,x,more\nc,y,last\n", /* the third one is b's */
    };
    told t;
    job.o.seeded = 0, job.o.n_labels = 2, job.o.label_names = names, job.o.label_texts = texts;
    job.o.n_texts = 0;
    set_add_remove();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job.o.records = make_records("labels.csv", rows[i], "who", "kind");
        if (i == 0)
            assert_ok(job_run(5, &t));
        else
            assert_refused_job("the records are not those that it began with");
    }
    job.o.records = make_records("labels.csv", rows[0], "who", "kind");
    job.o.label_texts = others;
    assert_refused_job("labels was");
    job.o.label_texts = texts;
    assert_ok(job_run(-1, &t));
}

TEST(test_methods_with_more) {
    told t;
    job.o.method.method = DPI_METHOD_AMIN;
    assert_error(job_run(-1, &t), UNSUPPORTED, "amin");
    job.o.method.method = DPI_METHOD_INVISIBLEINK, job.o.model_path = NULL;
    assert_error(job_run(-1, &t), ARG, "model_path");
}

/* ---- One charge ------------------------------------------------------------------------------ */

/* The job is charged to a new ledger. */
static void charge_to_new(int32_t scope) {
    make_ledger(scope);
    job.o.ledger = the_ledger, job.o.dataset = "letters";
    job.o.seeded = 0, job.o.method.rho = .1;
}

TEST(test_one_charge) {
    told t, more;
    for (int32_t scope = DPI_SCOPE_DATASET; scope <= DPI_SCOPE_UNIT; scope++) {
        job_make();
        job_records(NULL, scope == DPI_SCOPE_UNIT ? "who" : NULL);
        charge_to_new(scope);
        assert_ok(job_run(5, &t));
        const int64_t charged = info_of("letters").charged;
        assert_true(charged > 0);
        for (int32_t n = 8; n < 20; n += 6) {
            assert_ok(job_run(n, &more));
            assert_begins(&t, &more);
            t = more;
        }
        assert_ok(job_run(-1, &more));
        assert_int_equal(info_of("letters").charged, charged);
        assert_int_equal(info_of("letters").n_charges, 1);
        /* Without its ledger, and with another one, it does not go on. */
        job.o.ledger = NULL;
        assert_refused_job("it was begun with a ledger");
        charge_to_new(scope);
        assert_refused_job("the ledger does not have its charge");
        assert_int_equal(info_of("letters").n_charges, 0);
    }
}

/* The charge is the one that it was begun with: of the same amount, and counted. */
TEST(test_other_charge) {
    static const char *const changes[][2] = {
        {"UPDATE charge SET amount = amount - 1", "UPDATE charge SET amount = amount + 1"},
        {"UPDATE charge SET counted = 0", "UPDATE charge SET counted = 1"}};
    told t;
    charge_to_new(DPI_SCOPE_DATASET);
    assert_ok(job_run(5, &t));
    for (int i = 0; i < 2; i++) {
        exec_sql(path, changes[i][0]);
        assert_refused_job("the ledger does not have its charge");
        exec_sql(path, changes[i][1]);
    }
    assert_ok(job_run(-1, &t));
}

/* Records of the units in this order, p3 as another ID. */
static void write_letters(bool upwards, const char *p3) {
    char lines[1024];
    size_t n = 0;
    for (int i = 0; i < 10; i++) {
        const int unit = upwards ? i : 9 - i;
        char id[8];
        snprintf(id, sizeof id, "p%d", unit);
        n += (size_t)snprintf(lines + n, sizeof lines - n,
                              "{\"text\": \"a day\", \"who\": \"%s\"}\n", unit == 3 ? p3 : id);
    }
    job_records(lines, "who");
    job.o.n_texts = 3;
}

/* A process of the job that ends before it has read a record; whether the units pay whose IDs do
 * not begin with one of `without`. */
static void assert_payers(const char *without) {
    process p;
    assert_ok(job_start(&p));
    assert_ok(dpi_release_reserve(p.release, ERR));
    for (size_t unit = 0; unit < 9; unit++) {
        const char *id;
        size_t n_bytes;
        dpi_records_unit_id(job.o.records, unit, &id, &n_bytes);
        const bool is_without =
            (id[0] == 'q' && strchr(without, 'q')) || (id[0] == 'p' && strchr(without, id[1]));
        assert_int_equal(dpi_source_pays(&p.release->source, unit), !is_without);
    }
    assert_ok(dpi_books_begin_job(&p.release->books, ERR));
    job_stop(&p);
}

/* p8 cannot pay. Who has paid is known by the ID, also where the records have changed before one
 * was read; p9 is in no batch upwards. */
TEST(test_payers) {
    charge_to_new(DPI_SCOPE_UNIT);
    assert_string_equal(pay("letters", "p8", .5), "1");
    write_letters(true, "p3");
    assert_payers("89");
    assert_payers("89");
    write_letters(false, "p3");
    assert_payers("89");
    write_letters(false, "q");
    assert_payers("89q");
}
