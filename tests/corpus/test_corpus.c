/* test_corpus.c - the grammar of the corpus: what it writes, it reads back; its laws and splits. */
#include "tests/support/support.h"

#include <math.h>

#include "dpinfer/prompt_texts.h"
#include "corpus/prompt_forms.h"

enum { N_DOCUMENTS = 100, N_DRAWS = 20000 };

static void write_document(const corpus_domain *d, const int8_t *values, bool heldout,
                           uint64_t *rng, char *text) {
    const char *unknown = corpus_write(d, values, heldout, rng, text);
    if (unknown)
        fail_msg("%s: the grammar does not define %.20s", d->name, unknown);
}

static void read_text(const char *text, corpus_reading *r) { corpus_read(text, strlen(text), r); }

/* ---- The notation, by a domain of the test's own --------------------------------------------- */

static const corpus_value fruits[] = {{"apple", 1, 1, "", {"apple|orange"}, ""},
                                      {"pear", 1, 1, "", {"pear"}, ""}};
static const corpus_attribute own_attributes[] = {{"fruit", {"name"}, fruits, 2}};

static bool written(const corpus_rule *rules, int32_t n_rules, int8_t value, const char *wanted) {
    corpus_domain d = {.name = "own", .attributes = own_attributes, .n_attributes = 1,
                       .rules = rules, .n_rules = n_rules};
    bool found = false;
    for (uint64_t seed = 0; seed < 64 && !found; seed++) {
        char text[CORPUS_TEXT_BYTES];
        uint64_t rng = seed;
        write_document(&d, &value, false, &rng, text);
        found = strcmp(text, wanted) == 0;
    }
    return found;
}

TEST(test_notation) {
    const corpus_rule rules[] = {
        {"doc", "@ {fruit.name}[ or (two|three)]: {^word} {7-7} {word2}{word2}."},
        {"word", "yes"}, {"word", "no"}, {"word2", "x"}};
    assert_true(written(rules, 4, 0, "an apple: Yes 7 xx."));
    assert_true(written(rules, 4, 0, "an orange or two: No 7 xx."));
    assert_true(written(rules, 4, 1, "a pear or three: Yes 7 xx."));
    assert_false(written(rules, 4, 1, "an apple: Yes 7 xx."));
    const corpus_rule spaces[] = {{"doc", "a [b] c [d]"}};
    assert_true(written(spaces, 1, 0, "a c"));
    assert_true(written(spaces, 1, 0, "a b c d"));
    const corpus_rule wrong[] = {{"doc", "a {b}"}};
    corpus_domain d = {.name = "own", .rules = wrong, .n_rules = 1};
    char text[CORPUS_TEXT_BYTES];
    uint64_t rng = 1;
    assert_non_null(corpus_write(&d, NULL, false, &rng, text));
}

/* A pool's name stays the same in a document, and its copies differ. */
TEST(test_names) {
    const corpus_rule rules[] = {{"doc", "{surname} {surname} {surname2} {surname3}"}};
    corpus_domain d = {.name = "own", .rules = rules, .n_rules = 1};
    for (uint64_t seed = 0; seed < 500; seed++) {
        char text[CORPUS_TEXT_BYTES], name[4][32];
        uint64_t rng = seed;
        write_document(&d, NULL, seed % 2, &rng, text);
        int n = sscanf(text, "%31s %31s %31s %31s", name[0], name[1], name[2], name[3]);
        assert_int_equal(n, 4);
        assert_string_equal(name[0], name[1]);
        assert_string_not_equal(name[0], name[2]);
        assert_string_not_equal(name[0], name[3]);
        assert_string_not_equal(name[2], name[3]);
    }
}

/* ---- Writing and reading --------------------------------------------------------------------- */

static void check_domain(int32_t index, corpus_law_id id, bool heldout) {
    const corpus_domain *d = corpus_domains[index];
    corpus_law law = corpus_law_of(d, id);
    uint64_t rng = 100 + (uint64_t)id;
    int32_t n_read[CORPUS_ATTRIBUTES] = {0};
    for (int32_t i = 0; i < N_DOCUMENTS; i++) {
        char text[CORPUS_TEXT_BYTES];
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_reading r;
        corpus_draw(d, &law, heldout, &rng, values);
        write_document(d, values, heldout, &rng, text);
        size_t n_words = 1;
        for (const char *s = text; *s; s++)
            n_words += *s == ' ' || *s == '\n';
        assert_in_range(n_words, 60, 240);
        read_text(text, &r);
        if (!r.well_formed || r.domain != index || r.n_recognised != r.n_sentences)
            fail_msg("not recognised (%d of %d sentences): %s", (int)r.n_recognised,
                     (int)r.n_sentences, text);
        if (!r.agrees)
            fail_msg("contradicts itself: %s", text);
        if (!r.names_agree)
            fail_msg("has two names for one: %s", text);
        for (int32_t a = 0; a < d->n_attributes; a++)
            n_read[a] += r.values[a] == values[a];
    }
    for (int32_t a = 0; a < d->n_attributes; a++)
        if (100 * n_read[a] < 99 * N_DOCUMENTS)
            fail_msg("%s.%s: read from %d of %d documents", d->name, d->attributes[a].name,
                     (int)n_read[a], N_DOCUMENTS);
}

TEST(test_read_back) {
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        check_domain(i, CORPUS_PUBLIC, false);
        check_domain(i, CORPUS_PRIVATE, true);
        check_domain(i, CORPUS_FLAT, false);
    }
}

/* Starts of the words of a text. */
static int32_t find_words(const char *text, const char **words) {
    int32_t n = 0;
    for (const char *s = text; *s; s++)
        if (s == text || s[-1] == ' ' || s[-1] == '\n')
            words[n++] = s;
    words[n] = text + strlen(text);
    return n;
}

static void cut_out(const char *text, const char *from, const char *to, char *out) {
    sprintf(out, "%.*s%s", (int)(from - text), text, to);
}

/* The text with one word too few, two words exchanged, its last sentence cut short, its first or
 * last sentence missing, and its last sentence twice. */
enum { N_GARBLINGS = 6 };

static void garble(const char *text, int32_t how, uint64_t *rng, char *out) {
    const char *words[CORPUS_TEXT_BYTES], *body = strchr(text, '\n') + 1, *last = body;
    int32_t n = find_words(text, words), i;
    for (const char *s = body; s[2]; s++)
        if (*s == '.' && s[1] == ' ')
            last = s + 2;
    do /* a word of many letters, so that what is left cannot be another sentence */
        i = 1 + random_below(rng, n - 2);
    while (words[i + 1] - words[i] < 5 || words[i][-1] == '\n' || words[i][0] < 'a');
    switch (how) {
    case 0: cut_out(text, words[i], words[i] + 3, out); break;
    case 1:
        sprintf(out, "%.*s%.*s %.*s%s", (int)(words[i - 1] - text), text,
                (int)(words[i + 1] - words[i] - 1), words[i], (int)(words[i] - words[i - 1]),
                words[i - 1], words[i + 1]);
        break;
    case 2: cut_out(text, words[n - 1], words[n], out); break;
    case 3: cut_out(text, text, body, out); break;
    case 4: cut_out(text, last - 1, words[n], out); break;
    default: sprintf(out, "%s %s", text, last);
    }
}

TEST(test_garbled) {
    uint64_t rng = 5, test_rng = 6;
    for (int32_t i = 0; i < 40 * CORPUS_DOMAINS; i++) {
        const corpus_domain *d = corpus_domains[i % CORPUS_DOMAINS];
        corpus_law law = corpus_law_of(d, CORPUS_PUBLIC);
        char text[CORPUS_TEXT_BYTES], garbled[2 * CORPUS_TEXT_BYTES];
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_reading r;
        corpus_draw(d, &law, false, &rng, values);
        write_document(d, values, false, &rng, text);
        int32_t how = i / CORPUS_DOMAINS % N_GARBLINGS;
        garble(text, how, &test_rng, garbled);
        read_text(garbled, &r);
        if (r.well_formed)
            fail_msg("well-formed after garbling %d: %s\nFrom: %s", (int)how, garbled, text);
    }
    corpus_reading r;
    read_text("", &r);
    assert_false(r.well_formed);
    read_text("Once upon a time, there was a frog.\nIt lived in a pond. It was green.", &r);
    assert_false(r.well_formed);
    assert_int_equal(r.n_recognised, 0);
    assert_int_equal(r.n_sentences, 3);
    corpus_read("a\0b", 3, &r);
    assert_false(r.well_formed);
}

/* Attributes are read from text that no frame makes. */
TEST(test_votes) {
    corpus_reading r;
    read_text("Discharge instructions: asthma\nSo then the man with wheezing and a tight chest got "
              "the blue inhaler, and his wife and pneumonia too. Asthma it was.", &r);
    assert_int_equal(r.domain, 0);
    assert_string_equal(corpus_discharge.attributes[0].values[r.values[0]].name, "asthma");
    assert_string_equal(corpus_discharge.attributes[1].values[r.values[1]].name, "inhaler");
    assert_int_equal(r.values[2], -1);
    assert_false(r.well_formed);
}

/* Facts that differ, or that do not go together, are seen though every sentence is in order. */
TEST(test_agreement) {
    static const char form[] =
        "Home care sheet: asthma\nWe are glad that you are recovering from %s and can leave the "
        "ward "
        "today. Your main medicine is %s, which opens the airways. At home, drink plenty of water. "
        "To stay safe, stay away from smoke and dust. You will not be alone, because your wife "
        "will help you at home. The next check will be with the chest clinic, in %s. Both the "
        "extra fluids and a smoke-free home remain important until the %s visit. It is an "
        "emergency if you wheeze even at rest. Have a safe journey home, and greetings to your %s.";
    const struct {
        const char *dx, *med, *when, *kind, *helper;
        bool agrees;
    } cases[] = {
        {"asthma", "the blue inhaler", "one week", "one-week", "wife", true},
        {"an asthma attack", "salbutamol", "one week", "one-week", "wife", true},
        {"asthma", "the blue inhaler", "one week", "two-week", "wife", false},
        {"asthma", "the blue inhaler", "one week", "one-week", "son", false},
        {"pneumonia", "the blue inhaler", "one week", "one-week", "wife", false},
        {"asthma", "the blue inhaler", "three months", "three-month", "wife", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CORPUS_TEXT_BYTES];
        corpus_reading r;
        snprintf(text, sizeof text, form, cases[i].dx, cases[i].med, cases[i].when,
                 cases[i].kind, cases[i].helper);
        read_text(text, &r);
        assert_true(r.well_formed);
        assert_int_equal(r.agrees, cases[i].agrees);
    }
}

TEST(test_names_agree) {
    static const char form[] =
        "Ticket %s from %s: the office printer keeps jamming\n%s reported by email that the office "
        "printer keeps jamming. Today nobody can say why. On Friday, an engineer fitted a new "
        "roller and closed the gap. According to the contract, this has to be done within a week. "
        "After some tests, %s fitted a new roller. We told %s by email and closed the ticket. The "
        "customer, %s, is satisfied.";
    const struct {
        const char *number, *title, *open, *engineer, *told, *close;
        bool agree;
    } cases[] = {
        {"4711", "Delta Harbor", "Leo Voss of Delta Harbor", "Clara Novak", "Leo Voss",
         "Delta Harbor", true},
        {"8", "Delta Harbor", "Leo Voss of Helix Foods", "Clara Novak", "Leo Voss",
         "Helix Foods", true}, /* 8 is no {number}: the title and its company do not count */
        {"4711", "Delta Harbor", "Leo Voss of Helix Foods", "Clara Novak", "Leo Voss",
         "Helix Foods", false},
        {"4711", "Delta Harbor", "Leo Voss of Delta Harbor", "Clara Novak", "Leo Voss",
         "Helix Foods", false},
        {"4711", "Delta Harbor", "Leo Voss of Delta Harbor", "Clara Novak", "Leo Novak",
         "Delta Harbor", false},
        {"4711", "Delta Harbor", "Leo Voss of Delta Harbor", "Clara Voss", "Clara Voss",
         "Delta Harbor", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CORPUS_TEXT_BYTES];
        corpus_reading r;
        snprintf(text, sizeof text, form, cases[i].number, cases[i].title, cases[i].open,
                 cases[i].engineer, cases[i].told, cases[i].close);
        read_text(text, &r);
        assert_int_equal(r.names_agree, cases[i].agree);
    }
}

/* Companies of the pool that stand in the text more than once. */
static int32_t count_companies(const char *text) {
    int32_t copy, n = 0;
    const corpus_rule *pool = corpus_pool_find("company", 7, &copy);
    corpus_range items = {pool->frame, pool->frame + strlen(pool->frame)}, one;
    for (bool more = true; corpus_alternative(&items, &more, &one);) {
        char company[64];
        snprintf(company, sizeof company, "%.*s", (int)(one.end - one.p), one.p);
        const char *first = strstr(text, company);
        n += first && strstr(first + 1, company);
    }
    return n;
}

/* 100 documents of each form; adds how many companies stand more than once in them. */
static void check_forms(const corpus_domain *d, int32_t n_companies[3]) {
    corpus_law law = corpus_law_of(d, CORPUS_PUBLIC);
    uint64_t rng = 9;
    for (int32_t i = 0; i < 100; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_draw(d, &law, false, &rng, values);
        for (corpus_form form = CORPUS_DOCUMENT; form <= CORPUS_JUMBLED; form++) {
            char text[CORPUS_TEXT_BYTES];
            corpus_reading r;
            assert_null(corpus_write_as(form, d, values, false, &rng, text));
            read_text(text, &r);
            assert_ptr_equal(corpus_domains[r.domain], d);
            assert_int_equal(r.n_recognised, r.n_sentences);
            assert_true(r.names_agree);
            assert_int_equal(r.well_formed, form != CORPUS_JUMBLED);
            assert_true(form != CORPUS_JUMBLED || r.n_sentences == 19);
            n_companies[form] += count_companies(text);
        }
    }
}

TEST(test_forms) {
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        int32_t n_companies[3] = {0};
        check_forms(corpus_domains[i], n_companies);
        if (corpus_domains[i] != &corpus_ticket)
            continue;
        assert_in_range(n_companies[CORPUS_DOCUMENT], 1, 50);
        assert_true(n_companies[CORPUS_REPEATING] > n_companies[CORPUS_DOCUMENT]);
        assert_in_range(n_companies[CORPUS_JUMBLED], 90, 100);
    }
}

/* ---- Laws and splits ------------------------------------------------------------------------- */

/* The first attribute has no parents: its law is its weights, up to the held-out combinations.
 * The bound is six standard deviations. */
TEST(test_laws) {
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        const corpus_attribute *first = &corpus_domains[i]->attributes[0];
        double sum[2] = {0}, share[2][CORPUS_VALUES] = {{0}};
        int32_t n_rare = 0;
        for (int32_t v = 0; v < first->n_values; v++) {
            sum[0] += first->values[v].public_weight;
            sum[1] += first->values[v].private_weight;
        }
        for (int32_t id = 0; id < 2; id++) {
            corpus_law law = corpus_law_of(corpus_domains[i], (corpus_law_id)id);
            uint64_t rng = 9;
            for (int32_t k = 0; k < N_DRAWS; k++) {
                int8_t values[CORPUS_ATTRIBUTES];
                corpus_draw(corpus_domains[i], &law, k % 8 == 0, &rng, values);
                share[id][values[0]] += 1.0 / N_DRAWS;
            }
        }
        for (int32_t v = 0; v < first->n_values; v++) {
            double p = first->values[v].public_weight / sum[0];
            double q = first->values[v].private_weight / sum[1];
            n_rare += p < 0.01 && q > 0.05;
            if (fabs(share[0][v] - p) > 6 * sqrt(p / N_DRAWS) + 0.01 ||
                fabs(share[1][v] - q) > 6 * sqrt(q / N_DRAWS) + 0.01)
                fail_msg("%s: public %g for %g, private %g for %g", first->values[v].name,
                         share[0][v], p, share[1][v], q);
        }
        assert_true(n_rare >= 3); /* rare in public, common in private */
    }
}

/* Documents have no values that do not go together, whatever the law, and every value has its
 * documents. */
TEST(test_fits) {
    uint64_t rng = 11;
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        const corpus_domain *d = corpus_domains[i];
        bool seen[CORPUS_ATTRIBUTES][CORPUS_VALUES] = {{false}};
        for (int32_t k = 0; k < N_DRAWS; k++) {
            corpus_law law = k % 2 ? corpus_law_of(d, CORPUS_FLAT) : corpus_law_random(d, &rng);
            int8_t values[CORPUS_ATTRIBUTES];
            corpus_draw(d, &law, false, &rng, values);
            if (k % 3 == 0)
                corpus_redraw(d, &law, false, &rng, values);
            for (int32_t a = 0; a < d->n_attributes; a++) {
                assert_true(corpus_fits(d, values, a, values[a]));
                seen[a][values[a]] = true;
            }
        }
        for (int32_t a = 0; a < d->n_attributes; a++)
            for (int32_t v = 0; v < d->attributes[a].n_values; v++)
                if (!seen[a][v])
                    fail_msg("%s: no document has %s", d->name, d->attributes[a].values[v].name);
    }
    const corpus_value first[] = {{"a", 1, 1, "", {"a"}, ""}, {"b", 1, 1, "", {"b"}, ""}};
    const corpus_value second[] = {{"any", 1, 1, "", {"c"}, ""}, {"one", 1, 1, "", {"d"}, "b x"},
                                   {"not", 1, 1, "", {"e"}, "not b"},
                                   {"both", 1, 1, "", {"f"}, "a b, not x ab"}};
    const corpus_attribute own[] = {{"first", {"name"}, first, 2}, {"second", {"name"}, second, 4}};
    corpus_domain d = {.name = "own", .attributes = own, .n_attributes = 2};
    static const bool wanted[2][4] = {{true, false, true, true}, {true, true, false, true}};
    for (int8_t a = 0; a < 2; a++)
        for (int32_t v = 0; v < 4; v++)
            assert_int_equal(corpus_fits(&d, &a, 1, v), wanted[a][v]);
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* No combination of attributes is in both splits, nor a surname. */
TEST(test_splits) {
    enum { N = 4000 };
    static char keys[2 * N][16];
    static char *sorted[2 * N];
    const corpus_domain *d = &corpus_court;
    corpus_law law = corpus_law_of(d, CORPUS_PRIVATE);
    uint64_t rng = 3;
    for (int32_t i = 0; i < 2 * N; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_draw(d, &law, i % 2, &rng, values);
        for (int32_t a = 0; a < d->n_attributes; a++)
            keys[i][a] = (char)('A' + values[a]);
        keys[i][d->n_attributes] = '\0';
        keys[i][d->n_attributes + 1] = (char)(i % 2); /* the split, after the key's end */
        sorted[i] = keys[i];
    }
    qsort(sorted, 2 * N, sizeof *sorted, compare_words);
    for (int32_t i = 1; i < 2 * N; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            assert_int_equal(sorted[i - 1][d->n_attributes + 1], sorted[i][d->n_attributes + 1]);
    const corpus_rule rules[] = {{"doc", "{surname}"}};
    corpus_domain own = {.name = "own", .rules = rules, .n_rules = 1};
    for (uint64_t seed = 0; seed < 500; seed++) {
        char text[CORPUS_TEXT_BYTES];
        uint64_t start = seed;
        write_document(&own, NULL, true, &start, text);
        assert_false(written(rules, 1, -1, text));
    }
}

/* ---- Training examples ----------------------------------------------------------------------- */

/* Words of `text` from the first trigram of words on that are also a trigram of `other`: share
 * of all trigrams. */
static double shared_trigrams(const char *text, const char *other) {
    const char *words[CORPUS_TEXT_BYTES];
    int32_t n = find_words(text, words), n_shared = 0;
    for (int32_t i = 0; i + 3 <= n; i++) {
        char trigram[256];
        snprintf(trigram, sizeof trigram, "%.*s", (int)(words[i + 3] - words[i]), words[i]);
        n_shared += strstr(other, trigram) != NULL;
    }
    return (double)n_shared / (n - 2);
}

TEST(test_examples) {
    enum { N = 300 };
    uint64_t rng = 77;
    int32_t n_reference = 0, n_same = 0, n_values = 0, n_unnamed = 0;
    for (int32_t i = 0; i < N; i++) {
        corpus_example e;
        corpus_reading answer, reference;
        corpus_example_make(false, false, CORPUS_DOCUMENT, &rng, &e);
        read_text(e.assistant, &answer);
        assert_true(answer.well_formed);
        n_unnamed += strstr(e.user, DPI_CHAT_TASK) != NULL;
        static const char lead[] = "Here is one document of a collection:\n\n";
        if (strncmp(e.user, lead, strlen(lead)) != 0) {
            assert_null(strchr(e.user, '\n'));
            continue;
        }
        char *document = e.user + strlen(lead);
        char *end = strstr(document, "\n\nThe document ends here.\n\n");
        assert_non_null(end);
        *end = '\0';
        read_text(document, &reference);
        assert_true(reference.well_formed);
        assert_int_equal(reference.domain, answer.domain);
        assert_true(shared_trigrams(e.assistant, document) < 0.5);
        n_reference++;
        n_values += corpus_domains[answer.domain]->n_attributes;
        for (int32_t a = 0; a < corpus_domains[answer.domain]->n_attributes; a++)
            n_same += reference.values[a] == answer.values[a];
    }
    assert_in_range(n_reference, N * 6 / 10, N * 8 / 10);
    assert_in_range(n_unnamed, N * 4 / 10, N * 6 / 10);
    assert_true(n_same > n_values * 9 / 10 && n_same < n_values);
}

/* A seed determines every byte; another gives other documents. */
TEST(test_deterministic) {
    corpus_example a, b, c;
    uint64_t one = 1, same = 1, other = 2;
    for (int32_t i = 0; i < 20; i++) {
        corpus_example_make(false, false, CORPUS_DOCUMENT, &one, &a);
        corpus_example_make(false, false, CORPUS_DOCUMENT, &same, &b);
        corpus_example_make(false, false, CORPUS_DOCUMENT, &other, &c);
        assert_string_equal(a.user, b.user);
        assert_string_equal(a.assistant, b.assistant);
        assert_string_not_equal(a.assistant, c.assistant);
    }
}
