/* test_prompts.c - which texts stand in the two prompts, and in which turns. Tokens are those of
 * dpi_turns_encode, which tests/tokenizer/test_chat.c holds to published formats. */
#include "dpinfer/prompts.h"
#include "dpinfer/memory.h"
#include "tests/support/support.h"

#define BYTES(text) ((dpi_bytes){text, sizeof(text) - 1})

static dpi_model *model;
static const dpi_bytes examples[] = {{"One.", 4}, {"Two, {reference}.", 17}};

SETUP { assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR)); }
TEARDOWN { dpi_model_close(model); }

static dpi_prompt_options options(int32_t chat, int32_t n_examples, int32_t example_in) {
    dpi_prompt_options o;
    dpi_prompt_options_init(&o);
    o.chat = chat;
    o.examples = examples, o.n_examples = n_examples, o.example_in = example_in;
    return o;
}

/* Texts of user and model in turn, the last one of the user; NULL ends them. */
static void assert_turns(int32_t chat, const char *const *texts, const int32_t *found, size_t n) {
    dpi_turn turns[8];
    int32_t wanted[2048];
    size_t n_turns = 0, n_wanted;
    for (; texts[2 * n_turns + 1]; n_turns++) {
        const char *user = texts[2 * n_turns], *answer = texts[2 * n_turns + 1];
        turns[n_turns] = (dpi_turn){user, answer, strlen(user), strlen(answer)};
    }
    const char *last = texts[2 * n_turns];
    assert_ok(dpi_turns_encode(model, chat, NULL, 0, turns, n_turns, last, strlen(last), wanted,
                               2048, &n_wanted, ERR));
    assert_int_equal(n, n_wanted);
    assert_memory_equal(found, wanted, n * sizeof *found);
}

/* The public prompt, and the private one of the record "REC". */
static void assert_prompts(const dpi_prompt_options *o, const char *const *public_texts,
                           const char *const *private_texts) {
    dpi_prompts *prompts;
    dpi_prompts_info info;
    int32_t *tokens;
    size_t n;
    dpi_prompts_info_init(&info);
    assert_ok(dpi_prompts_create(model, o, 900, &prompts, ERR));
    assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
    assert_turns(info.chat, public_texts, dpi_prompts_public(prompts),
                 (size_t)(info.n_public - info.n_answer));
    assert_ok(dpi_prompts_encode(prompts, "REC", 3, &tokens, &n, ERR));
    assert_turns(info.chat, private_texts, tokens, n - (size_t)info.n_answer);
    dpi_private_free(tokens);
    dpi_prompts_free(prompts);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A record stands in the place of the examples, and behind them where that is asked for. */
TEST(test_examples) {
    const int32_t chats[] = {DPI_CHAT_ZEPHYR, DPI_CHAT_NONE};
    for (int i = 0; i < 2; i++) {
        dpi_prompt_options o = options(chats[i], 2, DPI_EXAMPLE_IN_PUBLIC);
        o.public_prompt = BYTES("On {label}:");
        o.label = BYTES("love");
        const char *const *shown =
            TEXTS("On love:", "One.", "On love:", "Two, {reference}.", "On love:");
        assert_prompts(&o, shown, TEXTS("On love:", "REC", "On love:"));
        o.example_in = DPI_EXAMPLE_IN_BOTH;
        assert_prompts(&o, shown, TEXTS("On love:", "One.", "On love:", "Two, {reference}.",
                                        "On love:", "REC", "On love:"));
        o.private_prompt = BYTES("As {reference}!");
        assert_prompts(&o, shown, TEXTS("On love:", "One.", "On love:", "Two, {reference}.",
                                        "As REC!"));
        o.example_in = DPI_EXAMPLE_IN_PUBLIC;
        assert_prompts(&o, shown, TEXTS("As REC!"));
    }
}

/* Earlier turns stand before all else in both prompts, as they are. */
TEST(test_turns) {
    static const dpi_turn turns[] = {{"Hi {label}.", "On {reference}.", 11, 15}, {"So?", "", 3, 0}};
    const int32_t chats[] = {DPI_CHAT_ZEPHYR, DPI_CHAT_NONE};
    for (int i = 0; i < 2; i++) {
        dpi_prompt_options o = options(chats[i], 1, DPI_EXAMPLE_IN_PUBLIC);
        o.turns = turns, o.n_turns = 2;
        o.public_prompt = BYTES("Write."), o.private_prompt = BYTES("As {reference}!");
        assert_prompts(&o, TEXTS("Hi {label}.", "On {reference}.", "So?", "", "Write.", "One.",
                                 "Write."),
                       TEXTS("Hi {label}.", "On {reference}.", "So?", "", "As REC!"));
        o.private_prompt = (dpi_bytes){0};
        assert_prompts(&o, TEXTS("Hi {label}.", "On {reference}.", "So?", "", "Write.", "One.",
                                 "Write."),
                       TEXTS("Hi {label}.", "On {reference}.", "So?", "", "Write.", "REC",
                             "Write."));
    }
}

/* Documents, one after the other; a chat model is told of the record. */
TEST(test_without_examples) {
    dpi_prompt_options o = options(DPI_CHAT_NONE, 0, DPI_EXAMPLE_IN_PUBLIC);
    assert_prompts(&o, TEXTS(""), TEXTS("", "REC", ""));
    o = options(DPI_CHAT_ZEPHYR, 0, DPI_EXAMPLE_IN_PUBLIC);
    o.public_prompt = BYTES("Write.");
    assert_prompts(&o, TEXTS("Write."), TEXTS("Here is one document of a collection:\n\nREC\n\n"
                                              "The document ends here.\n\nWrite."));
    o.public_prompt = (dpi_bytes){0};
    o.query = BYTES("Who?");
    o.chat = DPI_CHAT_NONE;
    o.n_examples = 1;
    assert_prompts(&o, TEXTS("Question: Who?\nAnswer:", "One.", "Question: Who?\nAnswer:"),
                   TEXTS("REC\n\nQuestion: Who?\nAnswer:"));
}

/* Earlier answers begin and end as the one that is wanted. */
TEST(test_answer) {
    dpi_prompt_options o = options(DPI_CHAT_ZEPHYR, 1, DPI_EXAMPLE_IN_PUBLIC);
    o.public_prompt = BYTES("Write.");
    o.answer = BYTES("{label}: \""), o.answer_end = BYTES("\"!");
    o.label = BYTES("love");
    assert_prompts(&o, TEXTS("Write.", "love: \"One.\"!", "Write."),
                   TEXTS("Write.", "love: \"REC\"!", "Write."));
}

/* What stands behind the texts of `turns`: the tokens of one text and then those of the answer. */
static void assert_begun(const dpi_prompts *prompts, const char *user, const char *begun,
                         const char *answer, const int32_t *found, size_t n) {
    const char *const texts[] = {begun, answer};
    int32_t wanted[2048];
    size_t n_wanted, more;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
    assert_ok(dpi_prompt_encode(model, info.chat, NULL, 0, user, strlen(user), wanted, 2048,
                                &n_wanted, ERR));
    for (int i = 0; i < 2; i++, n_wanted += more)
        assert_ok(dpi_tokenize(model, texts[i], strlen(texts[i]), 0, wanted + n_wanted,
                               2048 - n_wanted, &more, ERR));
    assert_int_equal(n, n_wanted);
    assert_memory_equal(found, wanted, n * sizeof *found);
}

/* With an answer a description makes a list; the record is its first item, in the place of the
 * examples or behind them. */
TEST(test_list) {
    static const struct {
        int32_t chat, example_in;
        const char *answer, *end, *user, *shown, *of_record;
    } cases[] = {
        {DPI_CHAT_ZEPHYR, DPI_EXAMPLE_IN_PUBLIC, " \"", "\"",
         "Write a list of made-up love letters.",
         "1. \"One.\"\n2. \"Two, {reference}.\"\n3.", "1. \"REC\"\n2."},
        {DPI_CHAT_NONE, DPI_EXAMPLE_IN_BOTH, "Dear", "\n", "A list of made-up love letters:\n\n",
         "1.\nDearOne.\n2.\nDearTwo, {reference}.\n3.\n",
         "1.\nDearOne.\n2.\nDearTwo, {reference}.\n3.\nDearREC\n4.\n"},
        /* an end that is a heading */
        {DPI_CHAT_ZEPHYR, DPI_EXAMPLE_IN_PUBLIC, "\n\n", "\n# No. ", "Write made-up love letters.",
         "# No. 1\n\nOne.\n# No. 2\n\nTwo, {reference}.\n# No. 3",
         "# No. 1\n\nREC\n# No. 2"},
        {DPI_CHAT_NONE, DPI_EXAMPLE_IN_BOTH, ": ", "\nText ", "A collection of love letters:\n\n",
         "Text 1: One.\nText 2: Two, {reference}.\nText 3",
         "Text 1: One.\nText 2: Two, {reference}.\nText 3: REC\nText 4"},
        {DPI_CHAT_NONE, DPI_EXAMPLE_IN_BOTH, " ", "#", "A list of made-up love letters:\n\n",
         "1. One.#\n2. Two, {reference}.#\n3.",
         "1. One.#\n2. Two, {reference}.#\n3. REC#\n4."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dpi_prompt_options o = options(cases[i].chat, 2, cases[i].example_in);
        dpi_prompts *prompts;
        dpi_prompts_info info;
        int32_t *tokens;
        size_t n;
        o.description = BYTES("{label} letters"), o.label = BYTES("love");
        o.answer = (dpi_bytes){cases[i].answer, strlen(cases[i].answer)};
        o.answer_end = (dpi_bytes){cases[i].end, strlen(cases[i].end)};
        dpi_prompts_info_init(&info);
        assert_ok(dpi_prompts_create(model, &o, 900, &prompts, ERR));
        assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
        assert_begun(prompts, cases[i].user, cases[i].shown, cases[i].answer,
                     dpi_prompts_public(prompts), (size_t)info.n_public);
        assert_ok(dpi_prompts_encode(prompts, "REC", 3, &tokens, &n, ERR));
        assert_begun(prompts, cases[i].user, cases[i].of_record, cases[i].answer, tokens, n);
        dpi_private_free(tokens);
        dpi_prompts_free(prompts);
    }
}

TEST(test_refused) {
    static const dpi_bytes blank[] = {{"a", 1}, {" \n", 2}};
    dpi_prompts *prompts;
    dpi_prompt_options o = options(DPI_CHAT_NONE, DPI_EXAMPLES_MAX + 1, DPI_EXAMPLE_IN_PUBLIC);
    assert_error(dpi_prompt_options_check(&o, ERR), ARG, "examples: found 64, allowed 0..63");
    o = options(DPI_CHAT_NONE, 2, 2);
    assert_error(dpi_prompt_options_check(&o, ERR), ARG, "example_in: found '2'");
    o = options(DPI_CHAT_NONE, 2, DPI_EXAMPLE_IN_BOTH);
    o.examples = blank;
    assert_error(dpi_prompt_options_check(&o, ERR), ARG, "examples: found no text in number 2");
    o.examples = examples;
    o.n_turns = DPI_EXAMPLES_MAX - 1;
    assert_error(dpi_prompt_options_check(&o, ERR), ARG, "turns: found 62, allowed 0..61");
    o.n_turns = 0;
    assert_error(dpi_prompts_create(model, &o, 12, &prompts, ERR), ARG,
                 "the public prompt with its examples has ");
}

TEST(test_orders) {
    const struct {
        const char *text;
        bool is;
    } cases[] = {{"Write a letter", true},    {" please tell me", true}, {"Writer's notes", false},
                 {"Dear Sir, please", false}, {"GIVE", true},            {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dpi_prompt_is_order((dpi_bytes){cases[i].text, strlen(cases[i].text)}),
                         cases[i].is);
    assert_int_equal(dpi_prompt_is_order((dpi_bytes){NULL, 0}), 0);
}

/* What a description asks for beside the prompt, and what leaves it to the caller. */
TEST(test_described_wording) {
    static const dpi_bytes own[] = {{"!", 1}};
    dpi_bytes stops[DPI_STOPS_MAX];
    dpi_prompt_options p;
    dpi_wording w;
    dpi_prompt_options_init(&p);
    dpi_wording_init(&w);
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
    assert_true(dpi_wording_is_default(&w));
    p.description = (dpi_bytes){"letters", 7}, p.chat = DPI_CHAT_CHATML;
    w.stops = own, w.n_stops = 1;
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
    assert_true(w.n_stops == 2 && w.stops == stops && w.ban_refusals == 1);
    assert_memory_equal(w.stops[0].data, "\"", 1);
    assert_memory_equal(w.stops[1].data, "!", 1);
    assert_memory_equal(w.answer.data, " \"", 2);
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR)); /* there is an answer */
    assert_int_equal(w.n_stops, 2);
    dpi_wording_init(&w);
    p.chat = DPI_CHAT_NONE;
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
    assert_true(w.n_stops == 1 && w.ban_refusals == 0);
    static const struct {
        int32_t n_text, chat;
        const char *stop, *answer;
    } forms[] = {{256, DPI_CHAT_NONE, "\"", " \""}, {257, DPI_CHAT_NONE, "\nText ", ":\n\n"},
                 {256, DPI_CHAT_CHATML, "\"", " \""}, {257, DPI_CHAT_CHATML, "\n# No. ", "\n\n"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) { /* 257: the texts are long */
        dpi_wording_init(&w);
        p.n_text = forms[i].n_text, p.chat = forms[i].chat;
        assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
        assert_int_equal(w.n_stops, 1);
        assert_string_equal(w.stops[0].data, forms[i].stop);
        assert_string_equal(w.answer.data, forms[i].answer);
        assert_true(w.stops[0].n_bytes == strlen(w.stops[0].data));
        assert_int_equal(w.no_repeat, forms[i].n_text == 256 ? 0 : 8);
    }
    p.n_text = -1;
    assert_error(dpi_prompt_options_check(&p, ERR), ARG, "n_text: found '-1', allowed 0 or more");
    p.n_text = 0;
    dpi_wording_init(&w);
    dpi_bytes many[DPI_STOPS_MAX];
    for (int i = 0; i < DPI_STOPS_MAX; i++)
        many[i] = own[0];
    w.stops = many, w.n_stops = DPI_STOPS_MAX;
    assert_error(dpi_wording_choose(&p, model, &w, stops, ERR), ARG, "stops: found 16, allowed 15");
    w.n_stops--;
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
    assert_int_equal(w.n_stops, DPI_STOPS_MAX);
    dpi_wording_init(&w);
    p.private_prompt = (dpi_bytes){"{reference}", 11};
    assert_ok(dpi_wording_choose(&p, model, &w, stops, ERR));
    assert_true(dpi_wording_is_default(&w));
}
