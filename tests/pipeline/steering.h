/* steering.h - what the tests of steering vectors share. */
#ifndef DPI_TEST_STEERING_H
#define DPI_TEST_STEERING_H

#include "dpinfer/report.h"
#include "dpinfer/steer.h"
#include "pipeline/steer/steer.h"
#include "tests/pipeline/people.h"

OWNED(dpi_steer, dpi_steer_free)

enum { N_EMBD = 64, N_PUBLIC = 3, N_DRAWN = 60, POSITIONS = 24 };
#define PUBLIC_TEXTS "text\nabc\nsome more\nand others\n"

static const int32_t first_layer[] = {1};

static inline dpi_steer_options say_options(const dpi_records *records) {
    DEFAULTS(dpi_steer_options, o);
    o.model = model, o.records = records, o.n_public = N_PUBLIC, o.n_public_tokens = 6;
    o.instruction = (dpi_bytes){"say", 3}, o.chat = DPI_CHAT_NONE;
    o.n_positions = POSITIONS, o.sigma = 1.5, o.delta = 1e-3, o.n_threads = 2;
    o.layers = first_layer, o.n_layers = 1, o.rank = N_EMBD;
    o.seeded = 1, o.seed = 42, o.n_words = 0;
    return o;
}

static inline dpi_steer *open_steer(const dpi_steer_options *o) {
    dpi_steer *s;
    assert_ok(dpi_steer_open(o, &s, ERR));
    return s;
}

static inline dpi_steer *prepared(const dpi_steer_options *o) {
    dpi_steer *s = open_steer(o);
    assert_ok(dpi_steer_prepare(s, ERR));
    return s;
}

static inline dpi_steer *released(const dpi_steer_options *o) {
    dpi_steer *s = prepared(o);
    assert_ok(dpi_steer_release(s, ERR));
    return s;
}

/* What the file says that the vectors are written to, and holds. */
static inline dpi_claim written(dpi_steer *s, const char *path) {
    dpi_claim claim;
    dpi_verification v;
    assert_ok(dpi_steer_write(s, path, -1, ERR));
    dpi_verification_init(&v);
    dpi_claim_init(&claim);
    assert_ok(dpi_claim_verify_file(path, &claim, &v, ERR));
    assert_int_equal(v.n_wrong, 0);
    dpi_verification_free(&v);
    return claim;
}

static inline dpi_records *lines(const char *name, const char *text, const char *unit_field) {
    DEFAULTS(dpi_records_options, o);
    o.unit_field = unit_field;
    return read_records(name, text, &o);
}

#endif
