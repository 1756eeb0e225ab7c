/* Features together: what releases and trainings charge, count and draw where several of labels,
 * groups, histograms, units, ledgers and checkpoints are in one run. A fault may show in one
 * combination alone. */
#include <math.h>
#include <unistd.h>

#include "pipeline/finetune/finetune.h"
#include "pipeline/release/release.h"
#include "tests/support/own.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];
static dpi_model *model;
static void *image;
static dpi_ledger *ledger;
static const char *const labels[] = {"a", "b", "c"};

enum { N_LABELS = 3, N_A = 2, N_B = 8, N_C = 4 }; /* units; those of a have 3 records each */

SETUP {
    static const int n_units[] = {N_A, N_B, N_C};
    const tiny_spec spec = tiny_default();
    dpi_ledger_options o;
    make_dir(dir, sizeof dir);
    model = tiny_open(&spec, 5, &image);
    dpi_ledger_options_init(&o);
    o.create = 1;
    assert_ok(dpi_ledger_open(path_in(dir, "ledger"), &o, &ledger, ERR));
    FILE *f = fopen(path_in(dir, "r.csv"), "w");
    assert_non_null(f);
    fputs("unit,label,text\n", f);
    for (int l = 0; l < N_LABELS; l++)
        for (int u = 0; u < n_units[l]; u++)
            for (int r = 0; r < (l == 0 ? 3 : 1); r++)
                fprintf(f, "%s%d,%s,letter %d of %d\n", labels[l], u, labels[l], r, u);
    assert_int_equal(fclose(f), 0);
}

TEARDOWN {
    dpi_ledger_close(ledger);
    dpi_model_close(model);
    free(image);
    remove_dir(dir);
}

static dpi_records *open_records(bool units, bool labeled) {
    dpi_records_options o;
    dpi_records *records;
    dpi_records_options_init(&o);
    o.unit_field = units ? "unit" : NULL;
    o.label_field = labeled ? "label" : NULL;
    assert_ok(dpi_records_open(path_in(dir, "r.csv"), &o, &records, ERR));
    return records;
}

/* A dataset of its own for each run. */
static const char *add_dataset(int32_t scope, double epsilon) {
    static char name[32];
    static int n;
    dpi_dataset_options o;
    dpi_dataset_options_init(&o);
    snprintf(name, sizeof name, "d%d", n++);
    o.name = name, o.epsilon = epsilon, o.delta = 1e-5, o.scope = scope;
    assert_ok(dpi_ledger_add(ledger, &o, ERR));
    return name;
}

static double charged(const char *dataset, int32_t *order) {
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info(ledger, dataset, &info, ERR));
    *order = info.order;
    return (double)info.charged / DPI_LEDGER_ONE;
}

static dpi_privacy_unit unit_of(const char *dataset) {
    DEFAULTS(dpi_dataset_info, info);
    assert_ok(dpi_ledger_info(ledger, dataset, &info, ERR));
    return info.unit;
}

/* These units of label b, and no others, have spent what they may. */
static void let_pay(const char *dataset, double rho) {
    const void *ids[N_B];
    size_t n_bytes[N_B];
    uint8_t pays[N_B];
    char names[N_B][8];
    dpi_cost cost;
    dpi_charge charge;
    for (int i = 0; i < N_B; i++)
        ids[i] = names[i], n_bytes[i] = (size_t)snprintf(names[i], sizeof names[i], "b%d", i);
    const dpi_ledger_units units = {.n = N_B, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    dpi_cost_init(&cost);
    dpi_charge_init(&charge);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, ERR));
    DEFAULTS(dpi_charge_request, request);
    request.cost = &cost, request.method = "outside", request.units = &units;
    assert_ok(dpi_ledger_reserve(ledger, dataset, &request, &charge, ERR));
    assert_true(pays[0] && pays[N_B - 1]);
}

/* ---- Releases -------------------------------------------------------------------------------- */

typedef enum grouping { NONE, PUBLIC, PRIVATE, CLUSTERS, N_GROUPINGS } grouping;

typedef struct product {
    int32_t method, accountant, pace;
    grouping by;
    bool histogram, units;
    int32_t way; /* 0: by position; 1: add-remove; 2: subsample; 3: both */
} product;

static dpi_release_options options_of(const product *p, const dpi_records *records) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.batch = 2, o.n_tokens = 3, o.n_parallel = 1;
    o.session.n_threads = 1;
    o.prompts.chat = DPI_CHAT_NONE;
    assert_ok(dpi_method_defaults(p->method, &o.method, ERR));
    o.method.delta = 1e-4;
    o.method.accountant = p->accountant, o.method.pace = p->pace;
    o.method.pace_theta = p->pace ? .5 : 0;
    o.method.adjacency = p->way % 2 ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
    o.method.subsample = p->way >= 2 ? .5 : 0;
    if (p->way >= 2 || p->accountant == DPI_ACCOUNTANT_BR)
        o.method.epsilon = 8;
    else
        o.method.rho = 3;
    o.n_texts = p->way || p->by == PRIVATE || p->by == CLUSTERS ? 6 : 0;
    o.labels = p->by == PUBLIC ? DPI_LABELS_PUBLIC : p->by == PRIVATE ? DPI_LABELS_PRIVATE : 0;
    if (p->by == PRIVATE || p->by == PUBLIC)
        o.n_labels = N_LABELS, o.label_names = labels;
    o.n_clusters = p->by == CLUSTERS ? N_LABELS : 0;
    o.histogram_rho = p->histogram ? .5 : 0;
    return o;
}

/* By the formulas: the method's own cost, which audits hold to theirs, and the histogram's rho as
 * its noise says. */
static void check_charge(const product *p, const dpi_run *c, const char *dataset) {
    int32_t order;
    double wanted;
    dpi_cost method;
    const double found = charged(dataset, &order);
    assert_ok(dpi_method_cost(&c->method, &c->plan, &method, ERR));
    assert_ok(dpi_cost_renyi(&method, order, &wanted, ERR));
    assert_int_equal(p->histogram, c->histogram > 0);
    if (p->histogram) {
        const double rho = 128. / (double)c->histogram; /* a unit moves one cell by 1 */
        double epsilon;
        assert_true(rho <= .5 && rho > .45);
        wanted += order * rho;
        assert_ok(dpi_zcdp_epsilon(c->plan.rho_total + rho, c->method.delta, &epsilon, ERR));
        assert_true(dpi_run_epsilon(c) >= epsilon * (1 - 1e-9));
        assert_true(c->plan.rho_total + rho <= 3 * (1 + 1e-9)); /* the budget pays for it */
    }
    assert_true(found >= wanted && found <= wanted * 1.000001 + 1e-6);
}

/* Whether the release is allowed at all. */
static bool try_product(const product *p) {
    dpi_records *records = open_records(p->units, p->by == PUBLIC || p->by == PRIVATE);
    dpi_release_options o = options_of(p, records);
    dpi_release *r = NULL;
    o.ledger = ledger, o.dataset = add_dataset(DPI_SCOPE_DATASET, 1000);
    dpi_status status = dpi_release_open(&o, &r, ERR);
    if (status == DPI_STATUS_OK) {
        assert_ok(dpi_release_begin(r, ERR));
        check_charge(p, dpi_release_run(r), o.dataset);
    } else if (status != DPI_STATUS_ARG && status != DPI_STATUS_UNSUPPORTED) {
        assert_ok(status);
    }
    dpi_release_free(r);
    dpi_records_close(records);
    return status == DPI_STATUS_OK;
}

#define INK .method = DPI_METHOD_INVISIBLEINK

/* Batches that stay secret count where each unit's is a draw of its own and the budget is epsilon:
 * all texts, or those of the label that has fewest. */
TEST(test_secret_batches) {
    static const int32_t uneven[N_LABELS] = {5, 3, 4};
    static const struct row {
        product p;
        int32_t n_texts, known, k;
        const int32_t *label_texts;
    } rows[] = {
        {{INK, .way = 1}, 6, 0, 6, NULL},
        {{INK, .way = 2}, 6, 0, 6, NULL},
        {{INK, .way = 3, .units = true}, 5, 0, 5, NULL},
        {{INK, .way = 1, .accountant = DPI_ACCOUNTANT_BR}, 6, 0, 6, NULL},
        {{INK, .way = 1, .accountant = DPI_ACCOUNTANT_FILTER}, 6, 0, 6, NULL},
        {{INK, .way = 1, .by = PRIVATE}, 7, 0, 2, NULL},
        {{INK, .way = 1, .by = PRIVATE}, 0, 0, 3, uneven},
        {{INK, .way = 1}, 6, 1, 0, NULL},
        {{INK, .way = 3}, 6, 1, 0, NULL},
        {{INK, .way = 1}, 1, 0, 0, NULL},
        {{INK, .way = 1, .by = PRIVATE, .histogram = true}, 6, 0, 0, NULL},
        {{INK, .way = 1, .by = CLUSTERS}, 6, 0, 0, NULL},
        {{INK, .way = 0}, 0, 0, 0, NULL},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        dpi_records *records = open_records(r->p.units, r->p.by == PRIVATE);
        dpi_release_options o = options_of(&r->p, records);
        dpi_release *one = NULL;
        double epsilon;
        o.method.rho = 0, o.method.epsilon = 8;
        o.n_texts = r->n_texts, o.known_batches = r->known, o.label_texts = r->label_texts;
        assert_ok(dpi_release_open(&o, &one, ERR));
        const dpi_run *c = dpi_release_run(one);
        assert_int_equal(c->method.allocation, r->k);
        if (r->k > 0 && r->p.accountant != DPI_ACCOUNTANT_BR && r->p.way == 1) {
            assert_ok(dpi_allocation_epsilon(c->plan.rho_total, r->k, o.method.delta, &epsilon,
                                             ERR));
            assert_true(epsilon > 7.99 && epsilon <= 8.0001);
            assert_ok(dpi_zcdp_epsilon(c->plan.rho_total, o.method.delta, &epsilon, ERR));
            assert_true(epsilon > 8.5); /* of a text */
        }
        dpi_release_free(one);
        dpi_records_close(records);
    }
    product p = {INK, .way = 1};
    dpi_records *records = open_records(false, false);
    dpi_release_options o = options_of(&p, records); /* its budget is rho */
    dpi_release *one = NULL;
    assert_ok(dpi_release_open(&o, &one, ERR));
    assert_int_equal(dpi_release_run(one)->method.allocation, 0);
    dpi_release_free(one);
    dpi_records_close(records);
}

/* A run that fits a dataset where batches are known fits it as well where they are secret; where
 * their secrecy is worth something at the dataset's order, it is counted. */
TEST(test_secret_batches_in_a_ledger) {
    static const double epsilons[] = {1.001, 3, 20};
    product p = {INK, .way = 1};
    dpi_records *records = open_records(false, false);
    for (size_t i = 0; i < sizeof epsilons / sizeof *epsilons; i++) {
        dpi_release_options o = options_of(&p, records);
        double amount[2];
        int32_t order, k = 0;
        o.method.rho = 0, o.method.epsilon = 1, o.n_texts = 40, o.batch = 1;
        o.ledger = ledger;
        for (int32_t known = 0; known <= 1; known++) {
            dpi_release *r = NULL;
            o.known_batches = known;
            o.dataset = add_dataset(DPI_SCOPE_DATASET, epsilons[i]);
            assert_ok(dpi_release_open(&o, &r, ERR));
            assert_ok(dpi_release_begin(r, ERR));
            k = known ? k : dpi_release_run(r)->method.allocation;
            amount[known] = charged(o.dataset, &order);
            dpi_release_free(r);
        }
        assert_true(i == 0 ? k == 0 : i == 2 ? k == 40 : k == 0 || k == 40);
        assert_true(k > 0 ? amount[0] < amount[1] : amount[0] == amount[1]);
    }
    dpi_records_close(records);
}

static int32_t batch_of(const dpi_release *r, size_t record) {
    for (int32_t b = 0; b < r->plan.claim.n_texts; b++) {
        dpi_batch batch;
        dpi_partition_batch(r->source.partition, b, &batch);
        for (size_t i = 0; i < batch.n_records; i++)
            if (batch.records[i] == record)
                return b;
    }
    return -1;
}

/* Of two records with the same text each has a batch of its own: else one would tell where the
 * other one is. Where batches may be known a hash of the text says which, and it is the same. */
TEST(test_batches_of_the_same_text) {
    static const char text[] = "{\"text\":\"a letter\"}\n{\"text\":\"a letter\"}\n";
    static const product p = {INK, .way = 1};
    for (int32_t known = 0; known <= 1; known++) {
        int32_t n_same = 0;
        dpi_records *records;
        dpi_records_options ro;
        dpi_records_options_init(&ro);
        write_file(path_in(dir, "same.jsonl"), text, sizeof text - 1);
        assert_ok(dpi_records_open(path_in(dir, "same.jsonl"), &ro, &records, ERR));
        for (uint64_t seed = 1; seed <= 6; seed++) {
            dpi_release_options o = options_of(&p, records);
            dpi_release *r = NULL;
            o.method.rho = 0, o.method.epsilon = 8;
            o.batch = 1, o.n_texts = 1000, o.known_batches = known, o.seeded = 1, o.seed = seed;
            assert_ok(dpi_release_open(&o, &r, ERR));
            assert_ok(dpi_release_begin(r, ERR));
            assert_true(batch_of(r, 0) >= 0 && batch_of(r, 1) >= 0);
            n_same += batch_of(r, 0) == batch_of(r, 1);
            dpi_release_free(r);
        }
        assert_int_equal(n_same, known ? 6 : 0);
        dpi_records_close(records);
    }
}

/* Each method, accountant and pace with each grouping, histogram, unit and adjacency. */
TEST(test_charges) {
    static const int32_t methods[][3] = {
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_TOP},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_NONE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_BR, DPI_PACE_NONE},
        {DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
        {DPI_METHOD_TANG, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
    };
    enum { N_METHODS = sizeof methods / sizeof *methods };
    int n_all = 0, n_of_grouping[N_GROUPINGS] = {0}, n_of_method[N_METHODS] = {0}, n_counted = 0;
    for (int m = 0; m < N_METHODS; m++)
        for (int i = 0; i < N_GROUPINGS * 2 * 2 * 4; i++) {
            const product p = {methods[m][0],      methods[m][1],       methods[m][2],
                               i % N_GROUPINGS,    i / N_GROUPINGS % 2, i / N_GROUPINGS / 2 % 2,
                               i / N_GROUPINGS / 4};
            if (!try_product(&p))
                continue;
            n_all++, n_of_grouping[p.by]++, n_of_method[m]++;
            n_counted += p.histogram && p.by == CLUSTERS;
        }
    print_message("%d products: %d %d %d %d\n", n_all, n_of_grouping[0], n_of_grouping[1],
                  n_of_grouping[2], n_of_grouping[3]);
    for (int m = 0; m < N_METHODS; m++)
        assert_true(n_of_method[m] >= 6);
    for (int g = 0; g < N_GROUPINGS; g++)
        assert_true(n_of_grouping[g] >= 6);
    assert_true(n_counted >= 4);
}

/* ---- Cells of histograms --------------------------------------------------------------------- */

/* With noise far above the counts, which of two labels has more texts is a coin of its own in each
 * run, and both have many in a fifth of them. Seeded, so that the bounds hold always or never. */
static void check_cells(grouping by, bool units) {
    enum { N_RUNS = 100 };
    const product p = {DPI_METHOD_INVISIBLEINK, 0, 0, by, true, units, 1};
    dpi_records *records = open_records(units, by == PRIVATE);
    int n_more[N_LABELS][N_LABELS] = {{0}}, n_both[N_LABELS][N_LABELS] = {{0}};
    uint64_t seed = 1;
    for (int run = 0; run < N_RUNS; run++) {
        dpi_release_options o = options_of(&p, records);
        dpi_release *r;
        o.histogram_rho = 1e-6; /* a deviation of 707 units */
        o.n_texts = 1000;
        o.method.random = dpi_random_insecure, o.method.random_user = &seed;
        assert_ok(dpi_release_open(&o, &r, ERR));
        assert_ok(dpi_release_begin(r, ERR));
        const int32_t *n_texts = r->source.labels.n_texts;
        for (int i = 0; i < N_LABELS; i++)
            for (int j = 0; j < N_LABELS; j++) {
                n_more[i][j] += n_texts[i] > n_texts[j];
                n_both[i][j] += n_texts[i] > 150 && n_texts[j] > 150;
            }
        dpi_release_free(r);
    }
    for (int i = 0; i < N_LABELS; i++)
        for (int j = 0; j < N_LABELS; j++)
            if (i != j) { /* in a quarter both are 0 */
                assert_in_range(n_more[i][j], 12, 65);
                assert_in_range(n_both[i][j], 4, 60);
            }
    dpi_records_close(records);
}

TEST(test_cells_of_labels) {
    check_cells(PRIVATE, false);
    check_cells(PRIVATE, true);
}
TEST(test_cells_of_clusters) { check_cells(CLUSTERS, false); }

/* ---- Trainings ------------------------------------------------------------------------------- */

static dpi_finetune_options training_of(const dpi_records *records) {
    dpi_finetune_options o;
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records;
    o.labels = labels, o.n_labels = N_LABELS;
    o.instruction = (dpi_bytes){"{label}:", 8}, o.chat = DPI_CHAT_NONE;
    o.histogram_epsilon = 1;
    o.sigma = 2, o.delta = 1e-3, o.n_units = 20, o.n_steps = 3;
    o.rank = 1, o.n_positions = 16, o.n_threads = 1;
    return o;
}

static dpi_finetune *begin(const dpi_finetune_options *o) {
    dpi_finetune *f;
    assert_ok(dpi_finetune_open(o, &f, ERR));
    assert_ok(dpi_finetune_begin(f, ERR));
    return f;
}

/* The mean of a count over draws, and the covariance of two cells in units of the variance. */
TEST(test_counts_of_training) {
    enum { DRAWS = 4000 };
    dpi_records *records = open_records(true, true);
    dpi_finetune_options o = training_of(records);
    o.seeded = 1, o.seed = 3;
    dpi_finetune *f = begin(&o);
    static const double true_counts[] = {N_A, N_B, N_C};
    const double r = exp(-1), variance = 2 * r / ((1 - r) * (1 - r));
    double sum[N_LABELS] = {0}, square[N_LABELS] = {0}, pairs[N_LABELS] = {0};
    for (int k = 0; k < DRAWS; k++) {
        double z[N_LABELS];
        f->counts[0] = 0; /* not drawn yet */
        assert_ok(dpi_finetune_draw_counts(f, &(bool){false}, ERR));
        for (int i = 0; i < N_LABELS; i++)
            sum[i] += z[i] = f->counts[1 + i] - true_counts[i];
        for (int i = 0; i < N_LABELS; i++) {
            square[i] += z[i] * z[i];
            pairs[i] += z[i] * z[(i + 1) % N_LABELS];
        }
    }
    for (int i = 0; i < N_LABELS; i++) {
        assert_true(fabs(sum[i]) < 8 * sqrt(variance * DRAWS));
        assert_true(fabs(square[i] / DRAWS - variance) < 8 * variance * sqrt(5. / DRAWS));
        assert_true(fabs(pairs[i]) < 8 * variance * sqrt(DRAWS));
    }
    dpi_finetune_free(f);
    dpi_records_close(records);
}

/* Units that cannot pay are in no count: those of b have spent their budget. */
TEST(test_counts_of_payers) {
    for (int paid = 0; paid < 2; paid++) {
        enum { N_TRAININGS = 12 };
        int n_of_b = 0;
        for (int k = 0; k < N_TRAININGS; k++) {
            dpi_records *records = open_records(true, true);
            dpi_finetune_options o = training_of(records);
            o.ledger = ledger, o.dataset = add_dataset(DPI_SCOPE_UNIT, 10);
            if (paid)
                let_pay(o.dataset, 1.5);
            dpi_finetune *f = begin(&o);
            n_of_b += f->counts[2];
            assert_int_equal(unit_of(o.dataset).adjacency, DPI_ADJACENCY_ADD_REMOVE);
            assert_string_equal(unit_of(o.dataset).unit_field, "unit");
            dpi_finetune_free(f);
            dpi_records_close(records);
        }
        /* By Chernoff: the sum of 12 draws of Laplace noise is above 47 with 1e-11. */
        assert_true(abs(n_of_b - (paid ? 0 : N_TRAININGS * N_B)) < 48);
    }
}

/* A release counts the same. */
TEST(test_shares_of_payers) {
    static const product kinds[] = {
        {DPI_METHOD_INVISIBLEINK, 0, 0, PRIVATE, true, true, 1},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, 0, PRIVATE, true, true, 1}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int paid = 0; paid < 2; paid++) {
            dpi_records *records = open_records(true, true);
            dpi_release_options o = options_of(&kinds[k], records);
            dpi_release *r;
            o.method.rho = 9, o.histogram_rho = 8; /* a deviation of 1/4 */
            o.n_texts = 140;
            o.ledger = ledger, o.dataset = add_dataset(DPI_SCOPE_UNIT, 50);
            if (paid)
                let_pay(o.dataset, 15);
            assert_ok(dpi_release_open(&o, &r, ERR));
            assert_ok(dpi_release_begin(r, ERR));
            const int32_t of_b = r->source.labels.n_texts[1]; /* 80 of 140, or none but for noise */
            assert_true(paid ? of_b < 50 : of_b > 60);
            dpi_release_free(r);
            dpi_records_close(records);
        }
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/* A training that goes on draws new bits each time: twice from one checkpoint, two adapters. With a
 * seed they are one. */
TEST(test_bits_after_checkpoint) {
    for (int seeded = 0; seeded < 2; seeded++) {
        char *adapter[2];
        size_t n_kept, n;
        dpi_records *records = open_records(true, true);
        dpi_finetune_options o = training_of(records);
        o.seeded = seeded, o.seed = 11;
        o.checkpoint_steps = 1;
        o.checkpoint = path_in(dir, "first");
        remove(o.checkpoint);
        dpi_finetune *f = begin(&o);
        assert_ok(dpi_finetune_step(f, ERR));
        assert_ok(dpi_finetune_keep(f, ERR));
        dpi_finetune_free(f);
        char *kept = read_file(o.checkpoint, &n_kept);
        for (int i = 0; i < 2; i++) {
            const char *path = path_in(dir, "adapter.gguf");
            o.checkpoint = path_in(dir, i ? "second" : "first");
            if (i)
                write_file(o.checkpoint, kept, n_kept);
            f = begin(&o);
            assert_int_equal(dpi_finetune_steps_done(f), 1);
            while (dpi_finetune_steps_done(f) < o.n_steps)
                assert_ok(dpi_finetune_step(f, ERR));
            assert_ok(dpi_finetune_write(f, path, -1, ERR));
            dpi_finetune_free(f);
            adapter[i] = read_file(path, &n);
            remove(path);
        }
        assert_int_equal(memcmp(adapter[0], adapter[1], n) == 0, seeded);
        free(kept), free(adapter[0]), free(adapter[1]);
        dpi_records_close(records);
    }
}

/* ---- Who pays -------------------------------------------------------------------------------- */

/* Of the units in their order, as "01", those that are in a run: each of them pays, but for those
 * of b where these have spent what they may. No other unit pays, and the ledger has the same. */
static void check_payers(const dpi_release_options *o, const char *in, bool b_has_spent) {
    enum { N = N_A + N_B + N_C };
    const void *ids[N];
    size_t n_bytes[N];
    uint8_t pays[N];
    const dpi_ledger_units units = {.n = N, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    dpi_release *r;
    assert_ok(dpi_release_open(o, &r, ERR));
    assert_ok(dpi_release_begin(r, ERR));
    for (size_t u = 0; u < N; u++) {
        const char *id;
        dpi_records_unit_id(o->records, u, &id, &n_bytes[u]);
        ids[u] = id;
    }
    assert_ok(dpi_ledger_paid(ledger, o->dataset, r->books.charge, &units, ERR));
    for (size_t u = 0; u < N; u++) {
        const bool is_b = u >= N_A && u < N_A + N_B;
        const bool wanted = in[u] == '1' && !(is_b && b_has_spent);
        assert_int_equal(dpi_source_pays(&r->source, u), wanted);
        assert_int_equal(pays[u], wanted);
    }
    dpi_release_free(r);
}

/* By position behind the last batch, of the whole or of a label, nobody pays; nor does a label that
 * is none of the run's. */
TEST(test_who_pays) {
    static const int32_t some[] = {2, 1};
    static const struct row {
        product p;
        int32_t n_texts;
        const int32_t *label_texts; /* of b and c, which are the labels */
        const char *in;
    } rows[] = {
        {{INK, .units = true}, 3, NULL, "11111100000000"},
        {{INK, .units = true, .way = 1}, 3, NULL, "11111111111111"},
        {{INK, .units = true, .by = PUBLIC}, 0, NULL, "00111111111111"},
        {{INK, .units = true, .by = PUBLIC}, 0, some, "00111100001100"},
        {{INK, .units = true, .by = PRIVATE, .way = 1}, 4, NULL, "00111111111111"},
        {{INK, .units = true, .by = CLUSTERS, .way = 1}, 4, NULL, "11111111111111"},
    };
    for (const struct row *r = rows; r < END(rows); r++)
        for (int spent = 0; spent < 2; spent++) {
            dpi_records *records = open_records(true, r->p.by == PUBLIC || r->p.by == PRIVATE);
            dpi_release_options o = options_of(&r->p, records);
            o.method.rho = 9, o.n_texts = r->n_texts, o.label_texts = r->label_texts;
            if (o.n_labels > 0)
                o.n_labels = 2, o.label_names = labels + 1;
            o.n_clusters = r->p.by == CLUSTERS ? 2 : 0;
            o.ledger = ledger, o.dataset = add_dataset(DPI_SCOPE_UNIT, 50);
            if (spent)
                let_pay(o.dataset, 15);
            check_payers(&o, r->in, spent);
            dpi_records_close(records);
        }
}

/* A histogram has its part of a budget of epsilon, as it has of one of rho. */
TEST(test_epsilon_with_a_histogram) {
    static const grouping groupings[] = {PRIVATE, CLUSTERS};
    for (int i = 0; i < 2; i++) {
        const product p = {INK, .by = groupings[i], .histogram = true, .way = 1};
        dpi_records *records = open_records(false, p.by == PRIVATE);
        dpi_release_options o = options_of(&p, records);
        dpi_release *r;
        o.method.rho = 0, o.method.epsilon = 8;
        assert_ok(dpi_release_open(&o, &r, ERR));
        const double epsilon = dpi_run_epsilon(dpi_release_run(r));
        assert_true(epsilon <= 8 && epsilon > 7.9);
        dpi_release_free(r);
        dpi_records_close(records);
    }
}
