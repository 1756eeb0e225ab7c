/* Grammars. The oracle: random expressions over two letters, and a matcher that tries every way,
 * for all words up to a length; by hand: the notation, characters of several bytes, refusals. */
#include "tests/grammar/forms.h"

static bool accepts(const dpi_grammar *g, const char *text, size_t n) {
    int32_t yes = -1;
    assert_ok(dpi_grammar_accepts(g, text, n, &yes, ERR));
    return yes == 1;
}

static void assert_accepts(const char *grammar, const char *const *yes, const char *const *no) {
    OWN(dpi_grammar) g = parse(grammar);
    assert_texts(g, grammar, yes, no);
}

TEST(test_notation) {
    assert_accepts("root ::= 'ab'", LIST("ab"), LIST("", "a", "abc", "b"));
    assert_accepts("root ::= ''", LIST(""), LIST("a"));
    assert_accepts("root ::= a | # comment\n  b\na ::= 'x'+\n\nb ::= [0-9]{2,3} 'y'?",
                   LIST("x", "xxx", "12", "123y"), LIST("", "1", "1234", "y", "xy"));
    assert_accepts("root ::= ('a'\n | 'b' [^a-c]) {2,}", LIST("aa", "abd", "bzbza"),
                   LIST("a", "bd", "bab", "bbb"));
    assert_accepts("root ::= 'a'{3} 'b'{0,2} 'c'{0}", LIST("aaa", "aaabb"),
                   LIST("aa", "aaabbb", "aaac"));
    assert_accepts("root ::= '\\x41\\u00e4\\U0001f600\\n\\'\\\\'",
                   LIST("A\xc3\xa4\xf0\x9f\x98\x80\n\"\\"), LIST("A"));
    assert_accepts("root ::= [\\]\\-\\^a] [x-]", LIST("]x", "--", "^x", "ax"), LIST("bx", "\\x"));
    assert_accepts("item ::= '(' root? ')'\nroot ::= item+", LIST("()", "(())()", "()(()())"),
                   LIST("", "(", "())", ")("));
    assert_accepts("root ::= 'a' | 'a' root", LIST("a", "aaaaaa"), LIST("", "b"));
}

/* One character, whatever its number of bytes, and no half of one. */
TEST(test_characters) {
    OWN(dpi_grammar) all = parse("root ::= .");
    OWN(dpi_grammar) range = parse("root ::= [\\u0080-\\U0010fffd]");
    OWN(dpi_grammar) but = parse("root ::= [^\\u00e4\\ud7ff-\\ue000]");
    OWN(dpi_automaton) any = machine_of(all);
    OWN(dpi_automaton) some = machine_of(range);
    OWN(dpi_automaton) none = machine_of(but);
    for (uint32_t c = 0; c <= 0x10ffff; c += c < 0x100 ? 1 : c < 0x1000 ? 61 : 997) {
        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        char text[4];
        uint32_t rest = c;
        for (size_t i = n - 1; i > 0; i--, rest >>= 6)
            text[i] = (char)(0x80 | (rest & 63));
        text[0] = (char)(n > 1 ? 0xf00 >> n | rest : rest); /* as many ones as bytes, and a zero */
        assert_true(reads(any, text, n));
        assert_int_equal(reads(some, text, n), c >= 0x80 && c <= 0x10fffd);
        assert_int_equal(reads(none, text, n), c != 0xe4 && c != 0xd7ff && c != 0xe000);
        assert_false(n > 1 && reads(any, text, n - 1));
    }
    assert_false(reads(any, "\xed\xa0\x80", 3)); /* a surrogate */
    assert_false(reads(any, "\xc0\x80", 2));     /* a form that is too long */
    assert_false(reads(any, "\xff", 1));
}

/* ---- Random expressions ---------------------------------------------------------------------- */

enum { NODES = 64, WORD = 7 };

typedef struct expression {
    char kind; /* 'a', 'b', '.', 'e' nothing, '&', '|', '*', '?', 'R' the rule r */
    int left, right;
} expression;

typedef struct world {
    expression at[NODES];
    int n, root, rule; /* rule: an expression that begins with a letter, so that it may recur */
    uint64_t seed;
} world;

static int grow(world *w, int depth) {
    const int32_t pick = random_below(&w->seed, depth > 0 && w->n < NODES - 6 ? 10 : 4);
    const int i = w->n++;
    w->at[i] = (expression){.kind = "ab.e&&||*?"[pick]};
    if (pick == 3 && depth == 0 && random_below(&w->seed, 2))
        w->at[i].kind = 'R';
    if (pick >= 4)
        w->at[i].left = grow(w, depth - 1);
    if (pick >= 4 && pick < 8)
        w->at[i].right = grow(w, depth - 1);
    return i;
}

static void print(const world *w, int i, char *out) {
    const expression *e = &w->at[i];
    out += strlen(out);
    if (e->kind == 'a' || e->kind == 'b')
        sprintf(out, "\"%c\"", e->kind);
    else if (e->kind == '.' || e->kind == 'e' || e->kind == 'R')
        strcat(out, e->kind == '.' ? "[ab]" : e->kind == 'e' ? "\"\"" : "r");
    else {
        strcat(out, "(");
        print(w, e->left, out);
        if (e->kind == '&' || e->kind == '|') {
            strcat(out, e->kind == '&' ? " " : " | ");
            print(w, e->right, out);
        }
        strcat(out, e->kind == '*' ? ")*" : e->kind == '?' ? ")?" : ")");
    }
}

/* The ends (bits) of what expression i reads of a word from a set of beginnings. */
static unsigned ends(const world *w, int i, const char *word, int n, unsigned from, int depth) {
    const expression *e = &w->at[i];
    unsigned to = 0;
    if (from == 0 || depth > 3 * WORD)
        return 0;
    switch (e->kind) {
    case 'e':
        return from;
    case '&':
        return ends(w, e->right, word, n, ends(w, e->left, word, n, from, depth), depth);
    case '|':
        return ends(w, e->left, word, n, from, depth) | ends(w, e->right, word, n, from, depth);
    case '?':
        return from | ends(w, e->left, word, n, from, depth);
    case 'R':
        return ends(w, w->rule, word, n, from, depth + 1);
    case '*':
        for (to = from; (from = ends(w, e->left, word, n, to, depth) & ~to) != 0;)
            to |= from;
        return to;
    default:
        for (int k = 0; k < n; k++)
            if ((from >> k & 1) && (e->kind == '.' || word[k] == e->kind))
                to |= 1u << (k + 1);
        return to;
    }
}

TEST(test_all_words) {
    int n_accepted = 0, n_refused = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        static char text[65536];
        world w = {.seed = seed};
        const int letter = w.n++;
        w.at[letter] = (expression){.kind = "ab"[seed % 2]};
        const int rest = grow(&w, 2);
        w.rule = w.n++;
        w.at[w.rule] = (expression){.kind = '&', .left = letter, .right = rest};
        w.root = grow(&w, 4);
        /* A rule that recurs without end is refused: it has another choice here. */
        sprintf(text, "r ::= \"%c\" | ", w.at[letter].kind);
        print(&w, w.rule, text);
        strcat(text, "\nroot ::= ");
        print(&w, w.root, text);
        const int choice = w.n++;
        w.at[choice] = (expression){.kind = '|', .left = letter, .right = w.rule};
        w.rule = choice;
        OWN(dpi_grammar) g = parse(text);
        OWN(dpi_automaton) a = machine_of(g);
        for (int n = 0; n <= WORD; n++)
            for (unsigned bits = 0; bits < 1u << n; bits++) {
                char word[WORD + 1];
                for (int k = 0; k < n; k++)
                    word[k] = "ab"[bits >> k & 1];
                const bool wanted = ends(&w, w.root, word, n, 1, 0) >> n & 1;
                if (reads(a, word, (size_t)n) != wanted)
                    fail_msg("%s: '%.*s' must be %d", text, n, word, wanted);
                n_accepted += wanted;
                n_refused += !wanted;
            }
    }
    assert_true(n_accepted > 1000 && n_refused > 1000);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_no_grammar(const char *text, dpi_status status, const char *part) {
    dpi_grammar *g = NULL;
    OWN_ARRAY(char) q = quoted(text);
    assert_status(dpi_grammar_parse(q, strlen(q), &g, ERR), status, part);
    assert_null(g);
}

TEST(test_refusals) {
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "no rule 'root'"},
        {"root ::= x", "'x' is used and not defined"},
        {"root ::= root 'a' | 'b'", "'root' begins with itself"},
        {"root ::= a\na ::= '' b\nb ::= (a | 'x')* 'y'", "begins with itself"},
        {"root ::= 'a' root", "'root' never ends"},
        {"root ::= 'a'\nroot ::= 'b'", "line 2: a rule that is defined already"},
        {"root ::= x\nx ::= ('a'\n", "line 2: "},
        {"root ::= x\nx ::= [ab\r\n\n", "line 2: "},
        {"root ::= x\nx ::= 'a'\ny :", "line 3: "},
        {"root ::= 'a", "\" is missing"},
        {"root ::= [a", "] is missing"},
        {"root ::= [^\\x00-\\U0010ffff]", "without characters"},
        {"root ::= [b-a]", "end is before"},
        {"root ::= [\xff]", "no UTF-8"},
        {"root ::= ('a'", ") is missing"},
        {"root ::= 'a')", "a ) without"},
        {"root ::= 'a'{2,1}", "below its least"},
        {"root ::= 'a'{x}", "without its numbers"},
        {"root ::= 'a'**", "a repetition of a repetition"},
        {"root ::= '\\q'", "escape that is not known"},
        {"root ::= '\\x4'", "more hexadecimal"},
        {"root ::= '\\ud800'", "no character"},
        {"root = 'a'", "no ::="},
        {"root ::= <token>", "found neither"},
        {"root\n\n", "no ::="},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_no_grammar(wrong[i].text, DPI_STATUS_FORMAT, wrong[i].part);
    assert_no_grammar("root ::= 'a'{10001}", DPI_STATUS_LIMIT, "more than 10000");
    assert_no_grammar("root ::= ((('a'{9999}){9999}){9999}){9999}", DPI_STATUS_LIMIT,
                      "65536 states");
    assert_no_grammar("root ::= (((''{9999}){9999}){9999}){9999} 'a'", DPI_STATUS_LIMIT,
                      "parts once");
}

static char *repeat(const char *head, const char *part, int32_t n, const char *tail) {
    char *text = malloc(strlen(head) + (size_t)n * strlen(part) + strlen(tail) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, head);
    while (n-- > 0)
        at = stpcpy(at, part);
    strcpy(at, tail);
    return text;
}

/* r0 to r(n - 1), each followed by what `part` says of the next one; the caller's. */
static char *rules(int n, const char *part, const char *last) {
    char *text = malloc(400000), *at = stpcpy(text, "root ::= r0\n");
    for (int i = 0; i < n; i++) {
        at += sprintf(at, "r%d ::= ", i);
        for (const char *p = part; *p; p++)
            at += *p == '#' ? sprintf(at, "r%d", i + 1) : sprintf(at, "%c", *p);
        at = stpcpy(at, "\n");
    }
    stpcpy(at, last);
    return text;
}

TEST(test_limits) {
    OWN_ARRAY(char) groups = repeat("root ::= ", "(", 65, "");
    assert_no_grammar(groups, DPI_STATUS_LIMIT, "64 groups");
    OWN_ARRAY(char) comment = repeat("", "#", (1 << 20) + 1, "");
    assert_no_grammar(comment, DPI_STATUS_LIMIT, "bytes");
    OWN_ARRAY(char) inside = rules(300, "# 'x'", "r300 ::= 'x'"); /* more than may be open */
    assert_no_grammar(inside, DPI_STATUS_FORMAT, "inside each other");
    OWN_ARRAY(char) many = rules(4096, "'x'", "");
    assert_no_grammar(many, DPI_STATUS_LIMIT, "4096 rules");
}

/* Texts that are hard for a parser which tries every way. */
TEST(test_hostile) {
    OWN(dpi_grammar) g = parse("root ::= 'a' root 'b' | 'a' root 'c' | 'a' root | ''");
    OWN_ARRAY(char) text = repeat("", "a", 100000, "");
    (void)accepts(g, text, 100000); /* more ways than are followed: no answer is wrong here */
    assert_true(accepts(g, text, 6));
    OWN(dpi_grammar) loops = parse("root ::= ('a'* 'a'*)* ('a'? 'a'?)* 'b'");
    assert_false(accepts(loops, text, 100000));
    /* A list of open rules for each way: 2^30 of them. */
    OWN_ARRAY(char) ways = rules(30, "# 'a' | # 'b'", "r30 ::= 'c'");
    OWN(dpi_grammar) many = parse(ways);
    assert_true(accepts(many, "caaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 31)); /* the first way of all */
    /* 256 may be open, and no more. */
    OWN(dpi_grammar) nested = parse("root ::= '(' root ')' | 'x'");
    for (int32_t depth = 250; depth <= 260; depth++) {
        OWN_ARRAY(char) open = repeat("", "(", depth, "x");
        OWN_ARRAY(char) whole = repeat(open, ")", depth, "");
        assert_int_equal(accepts(nested, whole, strlen(whole)), depth <= 256);
    }
    /* More places than are kept at a time. */
    OWN(dpi_grammar) places = parse("root ::= x{40} 'c'*\nx ::= 'a'{9000} 'b'");
    OWN_ARRAY(char) long_text = repeat("", "c", 400000, "");
    for (int i = 0; i < 40 * 9001; i++)
        long_text[i] = i % 9001 == 9000 ? 'b' : 'a';
    assert_true(accepts(places, long_text, 400000));
    assert_false(accepts(places, long_text, 40 * 9001 - 1));
    assert_true(accepts(places, long_text, 40 * 9001));
}

TEST(test_memory) {
    static const char text[] = "root ::= ([a-z] | r)* \"x\"{2}\nr ::= \"(\" root \")\"";
    dpi_status status = DPI_STATUS_MEMORY;
    for (int64_t n = 1; status != DPI_STATUS_OK; n++) {
        OWN(dpi_grammar) g = NULL;
        int32_t yes = 0;
        fail_allocation(n);
        status = dpi_grammar_parse(text, sizeof text - 1, &g, ERR);
        if (status == DPI_STATUS_OK)
            status = dpi_grammar_accepts(g, "ab(xx)xx", 8, &yes, ERR);
        const int64_t seen = fail_allocation(0);
        assert_int_equal(yes, status == DPI_STATUS_OK);
        assert_true(status == DPI_STATUS_MEMORY || (seen < n && n > 10));
    }
}
