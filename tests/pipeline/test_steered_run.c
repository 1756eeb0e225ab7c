/* Texts about the records that steering vectors were made of. */
#include <math.h>

#include "dpinfer/release.h"
#include "dpinfer/report.h"
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
    REFUSES_RUN(UNSUPPORTED, (o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_texts = 2),
                "steered: found add-remove");
    REFUSES_RUN(ARG, o.model = model, "found a model without a control vector");
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
    OWN(dpi_steer) loud = NULL;
    with = steered_model(alone, 0, &loud);
    o = about(with, alone);
    assert_error(dpi_release_open(&o, &r, ERR), ARG, "the vectors have no noise");
    dpi_model_close(with);
}

/* Vectors of labels take which unit has which as public, and a claim of texts does not: also where
 * there is one label, and so one set of vectors. */
TEST(test_steered_run_of_labels) {
    DEFAULTS(dpi_records_options, ro);
    ro.label_field = "kind";
    OWN(dpi_records) kinds = read_records("kinds.csv", "kind,text\na,one\na,two\na,more\n", &ro);
    OWN(dpi_records) texts = read_records("texts.csv", "kind,text\na,abc\na,some more\n", &ro);
    OWN(dpi_steer) s = NULL;
    dpi_steer_options so = say_options(kinds);
    so.instruction = (dpi_bytes){"say {label}", 11}, so.n_positions = 3 * POSITIONS;
    so.public_texts = texts, so.seeded = 0, so.sigma = 1.5;
    dpi_model *with = steered_by(&so, &s);
    dpi_release_options o = about(with, kinds);
    dpi_release *r = NULL;
    assert_error(dpi_release_open(&o, &r, ERR), UNSUPPORTED, "the vectors are of 1 labels");
    dpi_model_close(with);
}
