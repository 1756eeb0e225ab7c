/* The registry: what methods say about themselves is complete, consistent, and what the sampler
 * does. */
#include <math.h>

#include "dp/methods/method.h"
#include "tests/support/support.h"

/* All parameters of all methods: for (entry e = {0}; next(&e);) sets e.id and e.p. */
typedef struct entry {
    int32_t id, next; /* of its method; of the parameter after it */
    const dpi_parameter *p;
} entry;

static bool next(entry *e) {
    while (e->id < dpi_method_count() && e->next == dpi_method_parameter_count(e->id))
        e->id++, e->next = 0;
    e->p = dpi_method_parameter_get(e->id, e->next++);
    return e->p != NULL;
}

static bool is_choice(const dpi_parameter *p) { return p->type == DPI_PARAMETER_CHOICE; }
static bool is_real(const dpi_parameter *p) { return p->type == DPI_PARAMETER_REAL; }
static bool has_range(const dpi_parameter *p) { return p->type == DPI_PARAMETER_INT || is_real(p); }
static size_t size_of(const dpi_parameter *p) {
    return is_real(p) ? sizeof(double) : sizeof(int32_t);
}

/* One line of words for people. */
static void assert_line(const char *text) {
    assert_non_null(text);
    const size_t n = strlen(text);
    assert_true(n > 2 && n < 100);
    assert_null(strpbrk(text, "\n\t"));
    assert_true(text[n - 1] != '.' && text[0] != ' ' && text[n - 1] != ' ');
}

static bool is_word(const char *text, char between) {
    char allowed[] = "abcdefghijklmnopqrstuvwxyz?";
    allowed[26] = between;
    return text[strspn(text, allowed)] == '\0';
}

TEST(test_methods) {
    /* Public names, ids and what the proofs cover: they must not change by accident. */
    static const struct row {
        const char *name;
        int32_t id, has[6]; /* a guarantee; accountants, adjacencies, centers, subsamples, units */
    } known[] = {
        {"plain", DPI_METHOD_PLAIN, {0, 0, 0, 0, 0, 0}},
        {"invisibleink", DPI_METHOD_INVISIBLEINK, {1, 7, 7, 1, 1, 1}},
        {"amin", DPI_METHOD_AMIN, {1, 1, 7, 0, 1, 1}},
        {"adapmixed", DPI_METHOD_ADAPMIXED, {0, 0, 0, 0, 0, 0}},
        {"tang", DPI_METHOD_TANG, {1, 1, 3, 0, 1, 1}},
    };
    assert_true(dpi_method_count() >= 5);
    for (const struct row *k = known; k < END(known); k++) {
        const dpi_method_info *m = dpi_method_find(k->name);
        assert_non_null(m);
        assert_int_equal(m->id, k->id);
        const int32_t has[] = {m->has_guarantee, (int32_t)m->accountants, (int32_t)m->adjacencies,
                               m->centers,       m->subsamples,           m->units};
        assert_memory_equal(has, k->has, sizeof has);
    }
    for (int32_t id = 0; id < dpi_method_count(); id++) {
        const dpi_method_info *m = dpi_method_get(id);
        assert_int_equal(m->id, id);
        assert_ptr_equal(dpi_method_find(m->name), m);
        assert_true(is_word(m->name, '-'));
        assert_line(m->help);
        assert_true(m->source && m->output);
        assert_int_equal(m->warning == NULL, m->has_guarantee);
        assert_true(m->has_guarantee || (m->accountants == 0 && m->adjacencies == 0));
        assert_true(!m->has_guarantee || (m->accountants & 1 && m->adjacencies & 1));
        assert_true(m->min_ref <= m->max_ref && (m->min_ref > 0) == (m->max_ref > 0));
    }
    assert_true(!dpi_method_get(-1) && !dpi_method_get(dpi_method_count()));
    assert_null(dpi_method_find("Plain"));
    assert_int_equal(dpi_method_parameter_count(-1), 0);
    assert_null(dpi_method_parameter_get(DPI_METHOD_AMIN, -1));
    assert_null(dpi_method_parameter_get(DPI_METHOD_AMIN, 1000));
    assert_null(dpi_method_parameter_find(DPI_METHOD_PLAIN, "svt_sigma"));
}

TEST(test_parameters) {
    for (entry e = {0}; next(&e);) {
        const dpi_parameter *p = e.p;
        assert_true(is_word(p->name, '_') && is_word(p->option, '-'));
        assert_true(!p->old_option || is_word(p->old_option, '-'));
        assert_true(p->key[0] && p->label[0] && p->unit);
        assert_line(p->help);
        assert_true(p->type >= DPI_PARAMETER_INT && p->type <= DPI_PARAMETER_CHOICE);
        assert_true(p->offset % size_of(p) == 0 && p->offset >= sizeof(size_t));
        assert_true(p->offset + size_of(p) <= sizeof(dpi_sampler_options));
        assert_int_equal(is_choice(p), p->choices != NULL);
        assert_true(!has_range(p) || p->min < p->max);
        if (p->default_text)
            assert_true(p->default_value == 0);
        else
            assert_ok(dpi_parameter_check(p, p->default_value, ERR));
        assert_true(!p->needs || dpi_method_parameter_find(e.id, p->needs));
        assert_true(!p->is_optional || (p->default_value == 0 && p->default_text));
    }
}

/* In a method each name, option, key and field is there once; over methods a name, an option or a
 * label has one meaning. An older spelling may have another in each method. */
TEST(test_names) {
    for (entry a = {0}; next(&a);) {
        const dpi_parameter *p = a.p;
        const char *old = p->old_option ? p->old_option : "-";
        assert_ptr_equal(dpi_method_parameter_find(a.id, p->name), p);
        for (entry b = {0}; next(&b);) {
            const dpi_parameter *q = b.p;
            if (a.id == b.id && p != q) {
                assert_string_not_equal(p->option, q->option);
                assert_string_not_equal(p->key, q->key);
                assert_string_not_equal(old, q->option);
                assert_string_not_equal(old, q->old_option ? q->old_option : "");
                assert_int_not_equal(p->offset, q->offset);
            }
            if (strcmp(p->name, q->name) != 0)
                continue;
            assert_string_equal(p->option, q->option);
            assert_string_equal(p->key, q->key);
            assert_true(p->offset == q->offset && p->type == q->type);
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
    if (!has_range(p)) {
        for (; n < 2 || (is_choice(p) && p->choices[n]); n++)
            values[n] = n;
        return n;
    }
    if (!p->min_open)
        values[n++] = p->min;
    if (!p->max_open)
        values[n++] = p->max;
    values[n++] = is_real(p) ? p->max / 3 : rint((p->min + p->max) / 3);
    if (is_real(p)) {
        values[n++] = nextafter(p->min, p->max);
        values[n++] = nextafter(p->max, p->min);
    }
    if (p->zero || p->is_optional)
        values[n++] = 0;
    return n;
}

TEST(test_set_and_get) {
    for (entry e = {0}; next(&e);) {
        double values[8];
        const int32_t n = examples(e.p, values);
        for (int32_t i = 0; i < n; i++) {
            dpi_sampler_options o, back, empty;
            char text[64];
            dpi_sampler_options_init(&o);
            back = empty = o;
            assert_ok(dpi_parameter_set(e.p, &o, values[i], ERR));
            assert_true(dpi_parameter_value(e.p, &o) == values[i]);
            dpi_parameter_print(e.p, &o, text, sizeof text);
            assert_ok(dpi_parameter_parse(e.p, &back, text, ERR));
            assert_memory_equal(&o, &back, sizeof o);
            /* nothing but that field */
            memcpy((char *)&o + e.p->offset, (char *)&empty + e.p->offset, size_of(e.p));
            assert_memory_equal(&o, &empty, sizeof o);
        }
    }
}

TEST(test_refused) {
    static const char *const texts[] = {"",    " 1", "1 ",    "0x1", "nan",
                                        "inf", "x",  "1e999", "--1", "1,5"};
    for (entry e = {0}; next(&e);) {
        const dpi_parameter *p = e.p;
        const double inf = INFINITY;
        const double below = has_range(p) ? p->min_open ? p->min : nextafter(p->min, -inf) : -1;
        const double above = has_range(p) ? p->max_open ? p->max : nextafter(p->max, inf) : 1000;
        const double refused[] = {NAN, inf, -inf, below, above, 1e300, is_real(p) ? NAN : .5};
        dpi_sampler_options o, before;
        dpi_sampler_options_init(&o);
        before = o;
        for (const double *x = refused; x < END(refused); x++) {
            if ((p->zero || p->is_optional) && *x == 0)
                continue;
            assert_error(dpi_parameter_set(p, &o, *x, ERR), ARG, p->name);
        }
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            assert_error(dpi_parameter_parse(p, &o, texts[i], ERR), ARG, p->name);
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

TEST(test_ranges) {
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

static dpi_sampler_options usable(int32_t id) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    assert_ok(dpi_method_defaults(id, &o, ERR));
    o.acknowledge_not_dp = dpi_method_get(id)->needs_acknowledgement;
    o.n_vocab = DPI_WEIGHTS_MAX, o.n_tokens = 50, o.rho = 10, o.delta = 1e-6;
    o.n_ref = dpi_method_get(id)->max_ref > 0 ? 8 : 0;
    return o;
}

/* What the sampler refuses is what the registry refuses, and defaults are what it accepts. */
TEST(test_sampler) {
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    for (entry e = {0}; next(&e);) {
        static const double nan = NAN;
        static const int32_t bad = INT32_MIN;
        dpi_sampler_options o = usable(e.id);
        assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
        memcpy((char *)&o + e.p->offset, is_real(e.p) ? (const void *)&nan : &bad, size_of(e.p));
        assert_error(dpi_sampler_plan_make(&o, &plan, ERR), ARG, e.p->name);
    }
    assert_error(dpi_method_defaults(dpi_method_count(), &(dpi_sampler_options){0}, ERR), ARG,
                 "method is");
    assert_int_equal(dpi_tokens_default(4096), 256);
    assert_int_equal(dpi_tokens_default(511), 255);
    assert_int_equal(dpi_tokens_default(2), 1);
    dpi_sampler_options o, made = {.struct_size = sizeof made};
    dpi_sampler_options_init(&o);
    assert_ok(dpi_method_defaults(DPI_METHOD_INVISIBLEINK, &made, ERR));
    assert_memory_equal(&o, &made, sizeof o);
}

static const dpi_fact *find_fact(const dpi_fact *facts, int32_t n, const char *key) {
    for (int32_t i = 0; i < n; i++)
        if (facts[i].key && strcmp(facts[i].key, key) == 0)
            return &facts[i];
    return NULL;
}

TEST(test_facts) {
    dpi_fact f[DPI_FACTS_MAX + 1];
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    for (int i = 0; i < 2 * dpi_method_count(); i++) { /* with and without a sparse vector */
        const dpi_method_info *m = dpi_method_get(i / 2);
        dpi_sampler_options o = usable(m->id);
        char text[300];
        o.svt_sigma = 2 * (i % 2), o.svt_threshold = .5 * (i % 2);
        assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
        memset(f, '#', sizeof f);
        const int32_t n = dpi_method_facts(&o, &plan, f);
        assert_in_range(n, 0, DPI_FACTS_MAX);
        assert_memory_equal(&f[DPI_FACTS_MAX], "########", 8);
        for (int32_t k = 0; k < n; k++) {
            assert_true(f[k].key || (f[k].label && !(f[k].where & DPI_FACT_REALISED)));
            assert_true(f[k].where & (DPI_FACT_STATEMENT | DPI_FACT_REALISED));
            assert_true(f[k].type != DPI_FACT_TEXT || f[k].text[0]);
        }
        dpi_method_settings(&o, text, sizeof text);
        assert_int_equal(strncmp(text, m->title, strlen(m->title)), 0);
        assert_int_equal(dpi_method_neighbours(&o) != NULL, m->has_guarantee);
    }
    dpi_sampler_options o = usable(DPI_METHOD_AMIN);
    o.svt_sigma = 2, o.n_private = 7;
    assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
    const int32_t n = dpi_method_facts(&o, &plan, f);
    assert_int_equal(find_fact(f, n, "private_tokens_most")->integer, 7);
    assert_int_equal(find_fact(f, n, "svt_scale")->integer, plan.svt_scale);
    assert_true(find_fact(f, n, "rho_svt")->real == plan.rho_svt);
    assert_true(find_fact(f, n, "tau_public")->real == 1);
}

/* A null slot is what the neighbours' text says it is. */
TEST(test_neighbours) {
    static const struct row {
        int32_t method, adjacency;
        double subsample;
        const char *part;
    } rows[] = {
        {DPI_METHOD_INVISIBLEINK, DPI_ADJACENCY_REPLACE_BY_NULL, 0, "adds nothing"},
        {DPI_METHOD_INVISIBLEINK, DPI_ADJACENCY_ZERO_OUT, 0, "become 0"},
        {DPI_METHOD_AMIN, DPI_ADJACENCY_ZERO_OUT, 0, "adds nothing"},
        {DPI_METHOD_AMIN, DPI_ADJACENCY_REPLACE_BY_NULL, 0, "the public prompt's logits"},
        {DPI_METHOD_AMIN, DPI_ADJACENCY_REPLACE_BY_NULL, .5, "adds nothing"},
        {DPI_METHOD_AMIN, DPI_ADJACENCY_ADD_REMOVE, .5, "one record more or less"},
    };
    dpi_sampler_options o = usable(DPI_METHOD_INVISIBLEINK);
    for (const struct row *r = rows; r < END(rows); r++) {
        o.method = r->method, o.adjacency = r->adjacency, o.subsample = r->subsample;
        assert_non_null(dpi_method_neighbours(&o));
        assert_non_null(strstr(dpi_method_neighbours(&o), r->part));
    }
    o.adjacency = 9;
    assert_null(dpi_method_neighbours(&o));
}
