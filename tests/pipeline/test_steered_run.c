/* Texts about the records that steering vectors were made of. */
#include <math.h>

#include "dp/mechanism/steering.h"
#include "dpinfer/release.h"
#include "dpinfer/report.h"
#include "engine/session.h"
#include "pipeline/release/plan.h"
#include "tests/pipeline/steering.h"

/* A file of vectors, and the tiny model with them. */
static dpi_model *steered_by(const dpi_steer_options *o, dpi_steer **steer) {
    const tiny_spec spec = tiny_default();
    dpi_model *opened;
    DEFAULTS(dpi_model_options, mo);
    char path[512];
    snprintf(path, sizeof path, "%s", path_in(dir, "vectors.gguf"));
    *steer = released(o);
    remove(path);
    assert_ok(dpi_steer_write(*steer, path, -1, ERR));
    mo.control_vector = path;
    tiny_write(&spec, 5, path_in(dir, "tiny.gguf"));
    assert_ok(dpi_model_open(path_in(dir, "tiny.gguf"), &mo, &opened, ERR));
    return opened;
}

/* Of these records. */
static dpi_model *steered_model(const dpi_records *records, double sigma, dpi_steer **steer) {
    dpi_steer_options o = say_options(records);
    o.seeded = 0, o.sigma = sigma;
    if (sigma == 0)
        o.epsilon = INFINITY;
    return steered_by(&o, steer);
}

static dpi_release_options about(const dpi_model *with, const dpi_records *records) {
    DEFAULTS(dpi_release_options, o);
    o.model = with, o.records = records, o.batch = 2, o.n_tokens = 3, o.steered = 1;
    o.method.rho = .5, o.method.delta = 1e-3, o.method.pace = DPI_PACE_NONE;
    o.session.n_threads = 1;
    o.prompts.chat = DPI_CHAT_NONE;
    return o;
}

static dpi_claim claim_of(const dpi_release_options *o) {
    dpi_release *r;
    dpi_claim claim;
    assert_ok(dpi_release_open(o, &r, ERR));
    dpi_claim_of_run(dpi_release_run(r), &claim);
    dpi_release_free(r);
    return claim;
}

/* The run's claim has both mechanisms, which add up in zCDP, and is settled again as it is. */
TEST(test_steered_run) {
    OWN(dpi_steer) s = NULL;
    dpi_model *with = steered_model(by_record, 1.5, &s);
    dpi_release_options o = about(with, by_record);
    dpi_release *r = NULL;
    dpi_claim claim, again;
    double epsilon;
    OWN_ARRAY(char) json = NULL;
    assert_ok(dpi_release_open(&o, &r, ERR));
    dpi_claim_of_run(dpi_release_run(r), &claim);
    assert_int_equal(claim.n_parts, 2);
    const double rho = dpi_release_run(r)->plan.rho_total + .5 / (1.5 * 1.5);
    assert_true(claim.rho >= rho && claim.rho <= rho * (1 + 1e-12));
    assert_ok(dpi_zcdp_epsilon(rho, 1e-3, &epsilon, ERR));
    assert_true(claim.epsilon >= epsilon * (1 - 1e-12) && claim.epsilon <= epsilon * (1 + 1e-9));
    assert_true(dpi_run_epsilon(dpi_release_run(r)) == claim.epsilon);
    assert_int_equal(strlen(claim.parts[1].text), 64); /* of the vectors */
    assert_ok(dpi_claim_write(&claim, &json, ERR));
    assert_ok(dpi_claim_read(json, strlen(json), &again, ERR));
    assert_true(again.rho == claim.rho && again.epsilon == claim.epsilon);
    dpi_release_free(r);
    r = NULL;
#define REFUSES_RUN(status, change, part)                                                          \
    o = about(with, by_record), change,                                                            \
    assert_error(dpi_release_open(&o, &r, ERR), status, part)
    REFUSES_RUN(ARG, (o.records = by_person, o.method.max_per_unit = 2), "the vectors are of 7");
    REFUSES_RUN(UNSUPPORTED, (o.method.accountant = DPI_ACCOUNTANT_BR, o.method.rho = 0,
                              o.method.epsilon = 1), "found the accountant br");
    REFUSES_RUN(UNSUPPORTED, (o.method.subsample = .5, o.n_texts = 2, o.method.rho = 0,
                              o.method.epsilon = 1), "found secret assignment");
    REFUSES_RUN(UNSUPPORTED, (o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_texts = 2),
                "steered: found add-remove");
    REFUSES_RUN(ARG, o.model = model, "found a model without a control vector");
    REFUSES_RUN(ARG, o.session.steers = 1, "session.steers is 1, must be 0..0");
    dpi_model_close(with);
}

/* As many units, of which each has other records: those of a person count as one. */
TEST(test_steered_run_of_other_units) {
    OWN(dpi_records) alone = lines("alone.csv", "who,text\na,one\nb,two\nc,more\n", NULL);
    OWN(dpi_records) persons = lines("alone.csv", "who,text\na,one\nb,two\nc,more\n", "who");
    OWN(dpi_steer) s = NULL;
    dpi_model *with = steered_model(alone, 1.5, &s);
    dpi_release_options o = about(with, persons);
    dpi_release *r = NULL;
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "of 3 units of at most 0 records");
    dpi_model_close(with);
    OWN(dpi_steer) more = NULL; /* of persons, but of other numbers of their records */
    with = steered_model(persons, 1.5, &more);
    o = about(with, persons), o.method.max_per_unit = 4;
    assert_ok(dpi_release_open(&o, &r, ERR));
    dpi_release_free(r), r = NULL;
    o.method.max_per_unit = 3;
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "of 3 units of at most 4 records");
    dpi_model_close(with);
    OWN(dpi_steer) loud = NULL;
    with = steered_model(alone, 0, &loud);
    o = about(with, alone);
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "the vectors have no noise");
    dpi_model_close(with);
}

/* A ledger has a charge of the vectors already; and where somebody knows the noise of these, what
 * the system draws for texts does not hide it. */
TEST(test_steered_run_and_its_bits) {
    OWN(dpi_ledger) ledger = open_ledger(50, 1e-5, DPI_SCOPE_DATASET);
    OWN(dpi_steer) s = NULL;
    dpi_model *with = steered_model(by_record, 1.5, &s);
    dpi_release_options o = about(with, by_record);
    dpi_release *r = NULL;
    assert_int_equal(claim_of(&o).randomness, DPI_RANDOMNESS_SYSTEM);
    o.ledger = ledger, o.dataset = "people";
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "steered: found a ledger");
    dpi_model_close(with);
    OWN(dpi_steer) known = NULL;
    const dpi_steer_options so = say_options(by_record);
    with = steered_by(&so, &known);
    o = about(with, by_record);
    const dpi_claim claim = claim_of(&o);
    assert_int_equal(claim.randomness, DPI_RANDOMNESS_SEED);
    assert_false(dpi_claim_is_private(&claim));
    dpi_model_close(with);
}

/* How much of a report with this claim does not hold beside a file of vectors. */
static int32_t wrong_beside(const dpi_claim *claim, const dpi_model *with, const char *vectors) {
    dpi_report *made, *read;
    OWN_ARRAY(char) text = NULL;
    size_t n;
    dpi_verification v;
    assert_ok(dpi_report_of(claim, with, path_in(dir, "tiny.gguf"), &made, ERR));
    assert_ok(dpi_report_text(made, 1, DPI_REPORT_JSON, &text, &n, ERR));
    assert_ok(dpi_report_parse("r.json", text, n, &read, ERR));
    dpi_verification_init(&v);
    assert_ok(dpi_report_compare_vectors(read, vectors, &v, ERR));
    const int32_t n_wrong = v.n_wrong;
    dpi_verification_free(&v);
    dpi_report_free(made);
    dpi_report_free(read);
    return n_wrong;
}

/* Vectors of labels take which unit has which as public: so must the claim of texts. Each text has
 * those of its label, wherever the file has them. */
TEST(test_steered_run_of_labels) {
    static const char *const names[] = {"a", "b"};
    DEFAULTS(dpi_records_options, ro);
    ro.label_field = "kind";
    OWN(dpi_records) kinds = read_records("kinds.csv", "kind,text\nb,one\na,two\nb,more\n", &ro);
    OWN(dpi_records) others = read_records("others.csv", "kind,text\nb,one\na,two\nc,x\n", &ro);
    OWN(dpi_records) longer = read_records("longer.csv", "kind,text\nb,one\nab,two\na,x\n", &ro);
    OWN(dpi_records) loose = read_records("loose.csv", "text\none\ntwo\nmore\n", NULL);
    OWN(dpi_records) texts = read_records(
        "texts.csv", "kind,text\na,abc\na,some more\nb,a letter\nb,and others\n", &ro);
    OWN(dpi_steer) s = NULL;
    dpi_steer_options so = say_options(kinds);
    so.instruction = (dpi_bytes){"say {label}", 11}, so.n_positions = 3 * POSITIONS;
    so.public_texts = texts, so.seeded = 0, so.sigma = 1.5;
    so.labels = names, so.n_labels = 2;
    dpi_model *with = steered_by(&so, &s);
    dpi_release_options o = about(with, kinds);
    dpi_release *r = NULL;
    o.batch = 1;
    const dpi_claim claim = claim_of(&o);
    assert_int_equal(claim.labels, DPI_LABELS_PUBLIC);
    assert_int_equal(claim.n_parts, 2);
    assert_true(claim.parts[1].values[DPI_STEERING_NUMBERS] == 2 * N_EMBD);
    dpi_plan plan;
    dpi_session *session;
    assert_ok(dpi_plan_make(&o, &plan, ERR));
    assert_true(plan.labels.n == 2 && plan.sets[0] == 1 && plan.sets[1] == 0);
    dpi_session_options session_of = plan.options.session;
    session_of.n_seq = 6;
    assert_ok(dpi_session_create(with, &session_of, &session, ERR));
    assert_ok(dpi_plan_steer(&plan, session, 1, 2, 0, ERR));
    assert_ok(dpi_plan_steer(&plan, session, 3, 2, 1, ERR));
    const int32_t sets[] = {-1, 1, 1, 0, 0, -1};
    assert_memory_equal(session->vectors, sets, sizeof sets);
    dpi_session_free(session);
    dpi_plan_free(&plan);
    o = about(with, others), o.batch = 1;
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "found texts of 'c'");
    o = about(with, longer), o.batch = 1; /* it begins with a label */
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "found texts of 'ab'");
    o = about(with, loose);
    assert_error(dpi_release_open(&o, &r, ERR), UNSUPPORTED, "the vectors are of 2 labels");
    dpi_model_close(with);
    OWN(dpi_steer) worded = NULL; /* words beside vectors are in the claim, too */
    so.n_words = 5;
    with = steered_by(&so, &worded);
    o = about(with, kinds), o.batch = 1;
    const dpi_claim more = claim_of(&o);
    assert_true(dpi_claim_value(&more.parts[1], "words") == 5);
    assert_int_equal(wrong_beside(&more, with, dpi_model_control_vector(with)), 0);
    dpi_model_close(with);
}

/* The vectors are those of the file, and the run is none that could have taken them. */
TEST(test_verified_beside_vectors) {
    OWN(dpi_steer) s = NULL;
    dpi_model *with = steered_model(by_record, 1.5, &s);
    dpi_release_options o = about(with, by_record);
    const dpi_claim claim = claim_of(&o);
    dpi_claim forged;
    char path[512], other[512];
    snprintf(path, sizeof path, "%s", path_in(dir, "vectors.gguf"));
    snprintf(other, sizeof other, "%s", path_in(dir, "other.gguf"));
    assert_int_equal(wrong_beside(&claim, with, path), 0);
    forged = claim, forged.max_per_unit = 2;
    assert_int_equal(wrong_beside(&forged, with, path), 1);
    forged = claim, forged.n_units += 2;
    assert_int_equal(wrong_beside(&forged, with, path), 1);
    dpi_steer_options so = say_options(by_record); /* noise that somebody knows */
    OWN(dpi_steer) seeded = released(&so);
    assert_ok(dpi_steer_write(seeded, other, -1, ERR));
    assert_int_equal(wrong_beside(&claim, with, other), 2); /* another file, too */
    dpi_model_close(with);
    OWN(dpi_steer) known = NULL;
    with = steered_by(&so, &known);
    remove(other);
    forged = claim, forged.parts[1] = written(known, other).parts[0];
    assert_int_equal(wrong_beside(&forged, with, path), 1);
    forged.randomness = DPI_RANDOMNESS_SEED;
    assert_int_equal(wrong_beside(&forged, with, path), 0);
    dpi_model_close(with);
}
