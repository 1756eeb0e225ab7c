/* The registry: what methods say about themselves is complete, consistent, and what the sampler
 * does. */
#include <math.h>

#include "dp/methods/method.h"
#include "tests/support/support.h"

#define FOR_EACH_PARAMETER(id, p) \
    for (int32_t id = 0; id < dpi_method_count(); id++) \
        for (int32_t id##_at = 0; id##_at < dpi_method_parameter_count(id); id##_at++) \
            for (const dpi_parameter *p = dpi_method_parameter_get(id, id##_at); p; p = NULL)

/* One line of words for people. */
static void assert_line(const char *text) {
    assert_non_null(text);
    const size_t n = strlen(text);
    assert_true(n > 2 && n < 100);
    assert_null(strpbrk(text, "\n\t"));
    assert_true(text[n - 1] != '.' && text[0] != ' ' && text[n - 1] != ' ');
}

static bool is_word(const char *text, char between) {
    const char allowed[] = {between, '\0'};
    for (; *text; text++)
        if (!(*text >= 'a' && *text <= 'z') && !strchr(allowed, *text))
            return false;
    return true;
}

static void test_methods(void **state) {
    (void)state;
    /* Public names, ids and what the proofs cover: they must not change by accident. */
    static const struct {
        const char *name;
        int32_t id, guarantee;
        uint32_t accountants, adjacencies;
        int32_t centers, subsamples, units;
    } known[] = {
        {"plain", DPI_METHOD_PLAIN, 0, 0, 0, 0, 0, 0},
        {"invisibleink", DPI_METHOD_INVISIBLEINK, 1, 7, 7, 1, 1, 1},
        {"amin", DPI_METHOD_AMIN, 1, 1, 7, 0, 1, 1},
        {"adapmixed", DPI_METHOD_ADAPMIXED, 0, 0, 0, 0, 0, 0},
        {"tang", DPI_METHOD_TANG, 1, 1, 3, 0, 1, 1},
    };
    assert_true(dpi_method_count() >= 5);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const dpi_method_info *m = dpi_method_find(known[i].name);
        assert_non_null(m);
        assert_int_equal(m->id, known[i].id);
        assert_int_equal(m->has_guarantee, known[i].guarantee);
        assert_int_equal(m->accountants, known[i].accountants);
        assert_int_equal(m->adjacencies, known[i].adjacencies);
        assert_int_equal(m->centers, known[i].centers);
        assert_int_equal(m->subsamples, known[i].subsamples);
        assert_int_equal(m->units, known[i].units);
    }
    for (int32_t id = 0; id < dpi_method_count(); id++) {
        const dpi_method_info *m = dpi_method_get(id);
        assert_int_equal(m->id, id);
        assert_ptr_equal(dpi_method_find(m->name), m);
        assert_true(is_word(m->name, '-'));
        assert_line(m->help);
        assert_non_null(m->source);
        assert_non_null(m->output);
        assert_int_equal(m->warning == NULL, m->has_guarantee);
        assert_true(m->has_guarantee || (m->accountants == 0 && m->adjacencies == 0));
        assert_true(!m->has_guarantee || (m->accountants & 1 && m->adjacencies & 1));
        assert_true(m->min_ref <= m->max_ref && (m->min_ref > 0) == (m->max_ref > 0));
    }
    assert_null(dpi_method_get(-1));
    assert_null(dpi_method_get(dpi_method_count()));
    assert_null(dpi_method_find("Plain"));
    assert_int_equal(dpi_method_parameter_count(-1), 0);
    assert_null(dpi_method_parameter_get(DPI_METHOD_AMIN, -1));
    assert_null(dpi_method_parameter_get(DPI_METHOD_AMIN, 1000));
    assert_null(dpi_method_parameter_find(DPI_METHOD_PLAIN, "svt_sigma"));
}

static bool is_choice(const dpi_parameter *p) { return p->type == DPI_PARAMETER_CHOICE; }

static void test_parameters(void **state) {
    (void)state;
    FOR_EACH_PARAMETER(id, p) {
        assert_true(is_word(p->name, '_'));
        assert_true(is_word(p->option, '-'));
        assert_true(!p->old_option || is_word(p->old_option, '-'));
        assert_true(p->key[0] && p->label[0] && p->unit);
        assert_line(p->help);
        assert_true(p->type >= DPI_PARAMETER_INT && p->type <= DPI_PARAMETER_CHOICE);
        const size_t n_bytes = p->type == DPI_PARAMETER_REAL ? sizeof(double) : sizeof(int32_t);
        assert_true(p->offset % n_bytes == 0);
        assert_true(p->offset >= sizeof(size_t) &&
                    p->offset + n_bytes <= sizeof(dpi_sampler_options));
        assert_int_equal(is_choice(p), p->choices != NULL);
        const bool has_range = p->type == DPI_PARAMETER_INT || p->type == DPI_PARAMETER_REAL;
        assert_true(!has_range || p->min < p->max);
        assert_true(p->default_text || dpi_parameter_check(p, p->default_value, NULL) ==
                                           DPI_STATUS_OK);
        assert_true(!p->default_text || p->default_value == 0);
        assert_true(!p->needs || dpi_method_parameter_find(id, p->needs));
        assert_true(!p->is_optional || (p->default_value == 0 && p->default_text));
    }
}

/* In a method each name, option, key and field is there once; over methods a name, an option or a
 * label has one meaning. An older spelling may have another in each method. */
static void test_names(void **state) {
    (void)state;
    FOR_EACH_PARAMETER(a, p) {
        assert_ptr_equal(dpi_method_parameter_find(a, p->name), p);
        FOR_EACH_PARAMETER(b, q) {
            if (a == b && p != q) {
                assert_string_not_equal(p->option, q->option);
                assert_string_not_equal(p->key, q->key);
                assert_true(!p->old_option || strcmp(p->old_option, q->option) != 0);
                assert_true(!p->old_option || !q->old_option ||
                            strcmp(p->old_option, q->old_option) != 0);
                assert_int_not_equal(p->offset, q->offset);
            }
            if (strcmp(p->name, q->name) != 0)
                continue;
            assert_string_equal(p->option, q->option);
            assert_string_equal(p->key, q->key);
            assert_int_equal(p->offset, q->offset);
            assert_int_equal(p->type, q->type);
            assert_true(p->default_value == q->default_value);
        }
    }
    /* What means different things has different names. */
    assert_null(dpi_method_parameter_find(DPI_METHOD_AMIN, "top_k"));
    assert_null(dpi_method_parameter_find(DPI_METHOD_ADAPMIXED, "top_k"));
    assert_null(dpi_method_parameter_find(DPI_METHOD_ADAPMIXED, "svt_sigma"));
    assert_string_equal(dpi_method_parameter_find(DPI_METHOD_AMIN, "svt_sigma")->key, "sigma");
    assert_string_equal(dpi_method_parameter_find(DPI_METHOD_ADAPMIXED, "screen_sigma")->key,
                        "sigma");
}

/* Values of a parameter at the ends of its range and within. */
static int32_t examples(const dpi_parameter *p, double values[8]) {
    int32_t n = 0;
    if (p->type == DPI_PARAMETER_FLAG || is_choice(p)) {
        while (n < 2 || (is_choice(p) && p->choices[n])) {
            values[n] = n;
            n++;
        }
        return n;
    }
    if (!p->min_open)
        values[n++] = p->min;
    if (!p->max_open)
        values[n++] = p->max;
    values[n++] = p->type == DPI_PARAMETER_INT ? rint((p->min + p->max) / 3) : p->max / 3;
    if (p->type == DPI_PARAMETER_REAL) {
        values[n++] = nextafter(p->min, p->max);
        values[n++] = nextafter(p->max, p->min);
    }
    if (p->zero || p->is_optional)
        values[n++] = 0;
    return n;
}

static void test_set_and_get(void **state) {
    (void)state;
    FOR_EACH_PARAMETER(id, p) {
        double values[8];
        const int32_t n = examples(p, values);
        for (int32_t i = 0; i < n; i++) {
            dpi_error err;
            dpi_sampler_options o, back, empty;
            char text[64];
            dpi_sampler_options_init(&o);
            back = empty = o;
            assert_ok(dpi_parameter_set(p, &o, values[i], &err), &err);
            assert_true(dpi_parameter_value(p, &o) == values[i]);
            dpi_parameter_print(p, &o, text, sizeof text);
            assert_ok(dpi_parameter_parse(p, &back, text, &err), &err);
            assert_memory_equal(&o, &back, sizeof o);
            /* nothing but that field */
            const size_t size = p->type == DPI_PARAMETER_REAL ? sizeof(double) : sizeof(int32_t);
            memcpy((char *)&o + p->offset, (char *)&empty + p->offset, size);
            assert_memory_equal(&o, &empty, sizeof o);
        }
    }
}

static void test_refused(void **state) {
    (void)state;
    FOR_EACH_PARAMETER(id, p) {
        const bool has_range = p->type == DPI_PARAMETER_INT || p->type == DPI_PARAMETER_REAL;
        const double inf = INFINITY;
        const double below = has_range ? p->min_open ? p->min : nextafter(p->min, -inf) : -1;
        const double above = has_range ? p->max_open ? p->max : nextafter(p->max, inf) : 1000;
        const double refused[] = {NAN, inf, -inf, below, above, 1e300,
                                  p->type == DPI_PARAMETER_REAL ? NAN : .5};
        dpi_sampler_options o, before;
        dpi_sampler_options_init(&o);
        before = o;
        dpi_error err;
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
            if ((p->zero || p->is_optional) && refused[i] == 0)
                continue;
            assert_error(dpi_parameter_set(p, &o, refused[i], &err), DPI_STATUS_ARG, &err, p->name);
            assert_memory_equal(&o, &before, sizeof o);
        }
        static const char *const texts[] = {"", " 1", "1 ", "0x1", "nan", "inf", "x", "1e999",
                                            "--1", "1,5"};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            assert_error(dpi_parameter_parse(p, &o, texts[i], &err), DPI_STATUS_ARG, &err, p->name);
        assert_memory_equal(&o, &before, sizeof o);
    }
}

static void assert_range(const char *name, const char *expected) {
    char text[64];
    const dpi_parameter *found = NULL;
    for (int32_t id = 0; id < dpi_method_count() && !found; id++)
        found = dpi_method_parameter_find(id, name);
    assert_non_null(found);
    dpi_parameter_range(found, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_ranges(void **state) {
    (void)state;
    assert_range("tau", "0.01..100, or 0 (the likeliest token)"); /* of plain, the first */
    assert_range("rho", "0 < x <= 1e+06");
    assert_range("delta", "0 < x < 1");
    assert_range("accountant", "zcdp|br|filter");
    assert_range("denominator", "1..4096");
    assert_range("svt_sigma", "1e-06..1000");
    char small[8];
    memset(small, '#', sizeof small);
    dpi_parameter_range(dpi_method_parameter_find(DPI_METHOD_AMIN, "adjacency"), small, 6);
    assert_string_equal(small, "repla");
    assert_int_equal(small[6], '#');
}

/* What the sampler refuses is what the registry refuses, and defaults are what it accepts. */
static dpi_sampler_options usable(int32_t id) {
    dpi_sampler_options o;
    dpi_error err;
    dpi_sampler_options_init(&o);
    assert_ok(dpi_method_defaults(id, &o, &err), &err);
    o.acknowledge_not_dp = dpi_method_get(id)->needs_acknowledgement;
    o.n_vocab = DPI_WEIGHTS_MAX;
    o.n_tokens = 50;
    o.n_ref = dpi_method_get(id)->max_ref > 0 ? 8 : 0;
    o.rho = 10;
    o.delta = 1e-6;
    return o;
}

static void test_sampler(void **state) {
    (void)state;
    dpi_error err;
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    FOR_EACH_PARAMETER(id, p) {
        dpi_sampler_options o = usable(id);
        assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
        const bool is_real = p->type == DPI_PARAMETER_REAL;
        const int32_t bad = INT32_MIN;
        const double nan = NAN;
        memcpy((char *)&o + p->offset, is_real ? (const void *)&nan : &bad,
               is_real ? sizeof nan : sizeof bad);
        assert_error(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_ARG, &err, p->name);
    }
    assert_error(dpi_method_defaults(dpi_method_count(), &(dpi_sampler_options){0}, &err),
                 DPI_STATUS_ARG, &err, "method is");
    assert_int_equal(dpi_tokens_default(4096), 256);
    assert_int_equal(dpi_tokens_default(511), 255);
    assert_int_equal(dpi_tokens_default(2), 1);
    dpi_sampler_options o, made = {0};
    dpi_sampler_options_init(&o);
    made.struct_size = sizeof made;
    assert_ok(dpi_method_defaults(DPI_METHOD_INVISIBLEINK, &made, &err), &err);
    assert_memory_equal(&o, &made, sizeof o);
}

static const dpi_fact *find_fact(const dpi_fact *facts, int32_t n, const char *key) {
    for (int32_t i = 0; i < n; i++)
        if (facts[i].key && strcmp(facts[i].key, key) == 0)
            return &facts[i];
    return NULL;
}

static void test_facts(void **state) {
    (void)state;
    dpi_error err;
    dpi_fact f[DPI_FACTS_MAX + 1];
    for (int32_t id = 0; id < dpi_method_count(); id++)
        for (int svt = 0; svt < 2; svt++) {
            dpi_sampler_options o = usable(id);
            dpi_sampler_plan plan = {.struct_size = sizeof plan};
            char text[300];
            o.svt_sigma = 2 * svt;
            o.svt_threshold = .5 * svt;
            assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
            memset(f, '#', sizeof f);
            const int32_t n = dpi_method_facts(&o, &plan, f);
            assert_in_range(n, 0, DPI_FACTS_MAX);
            assert_memory_equal(&f[DPI_FACTS_MAX], "########", 8);
            for (int32_t i = 0; i < n; i++) {
                assert_true(f[i].key || f[i].label);
                assert_true(f[i].where & (DPI_FACT_STATEMENT | DPI_FACT_REALISED));
                assert_true(!(f[i].where & DPI_FACT_REALISED) || f[i].key);
                assert_true(f[i].type != DPI_FACT_TEXT || f[i].text[0]);
            }
            dpi_method_settings(&o, text, sizeof text);
            assert_int_equal(strncmp(text, dpi_method_get(id)->title,
                                     strlen(dpi_method_get(id)->title)), 0);
            assert_int_equal(dpi_method_neighbours(&o) != NULL, dpi_method_get(id)->has_guarantee);
        }
    dpi_sampler_options o = usable(DPI_METHOD_AMIN);
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    o.svt_sigma = 2;
    o.n_private = 7;
    assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
    const int32_t n = dpi_method_facts(&o, &plan, f);
    assert_int_equal(find_fact(f, n, "private_tokens_most")->integer, 7);
    assert_int_equal(find_fact(f, n, "svt_scale")->integer, plan.svt_scale);
    assert_true(find_fact(f, n, "rho_svt")->real == plan.rho_svt);
    assert_true(find_fact(f, n, "tau_public")->real == 1);
}

/* A null slot is what the neighbours' text says it is. */
static void test_neighbours(void **state) {
    (void)state;
    dpi_sampler_options o = usable(DPI_METHOD_INVISIBLEINK);
    assert_non_null(strstr(dpi_method_neighbours(&o), "adds nothing"));
    o.adjacency = DPI_ADJACENCY_ZERO_OUT;
    assert_non_null(strstr(dpi_method_neighbours(&o), "become 0"));
    o.method = DPI_METHOD_AMIN;
    assert_non_null(strstr(dpi_method_neighbours(&o), "adds nothing"));
    o.adjacency = DPI_ADJACENCY_REPLACE_BY_NULL;
    assert_non_null(strstr(dpi_method_neighbours(&o), "the public prompt's logits"));
    o.subsample = .5;
    assert_non_null(strstr(dpi_method_neighbours(&o), "adds nothing"));
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    assert_non_null(strstr(dpi_method_neighbours(&o), "one record more or less"));
    o.adjacency = 9;
    assert_null(dpi_method_neighbours(&o));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),     cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_set_and_get),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_sampler),     cmocka_unit_test(test_facts),
        cmocka_unit_test(test_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
