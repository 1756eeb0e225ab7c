/* What a preview says is wrong: planted cases of each fault, and silence on good texts. */
#include "eval/advice.h"
#include "tests/eval/eval_support.h"

static const char *const records[] = {
    "I was charged a fee for a transfer to my savings account.",
    "My new card has not arrived after two weeks of waiting.",
    "Why was my cash withdrawal declined at the machine today?",
    "Can I change the currency of my travel card before Monday?"};
/* Of the same kind, each nearer to its own record than the public ones are. */
static const char *const of_records[] = {
    "Why is there a fee of two pounds on the transfer to savings?",
    "The card that you sent two weeks ago has still not arrived here.",
    "The machine declined my cash withdrawal and kept the receipt.",
    "Is it possible to change my travel card into another currency?"};
static const char *const public_texts[] = {
    "How do I reset the pin?", "Please close this account for me.",
    "Which banks can I top up from?", "The app shows an error when I sign in."};
static const char *const deaf[] = {
    "How do I open an account?", "Please tell me about rates.", "The app is slow.",
    "Which documents do you need?"};
static const char *const refused[] = {
    "Sure! Here is a message:\nHow do I reset the pin?", "I'm sorry, but I can't assist with that.",
    "\"here is another one:\nclose it\"", "AS AN AI I have no account."};
static const char *const alike[] = {"Hello.", "Hello.", "Hello.", "Hello."};
/* One text of four; and a refrain, which is none. */
static const char *const circles[] = {
    "How do I reset the pin?", "Please close this account for me.",
    "The app is slow and the app is slow and the app is slow and the app is slow.",
    "Which banks can I top up from?"};
static const char *const refrain[] = {
    "How do I reset the pin?", "Please close this account for me.", "No. No. No. No. No. No.",
    "The app is slow. I have told you that the app is slow, and you said that it would be better."};
enum { N = 4 };
static const bool whole[N] = {false}, cut[N] = {true, true, false, true};

/* The faults that are told, in their order, as "opening cut". */
static const char *told(const char *const *of_public, const char *const *of_record,
                        eval_tried t) {
    static char names[160];
    OWN_TEXTS p = make_texts(of_public, NULL, N), r = make_texts(of_record, NULL, N),
              shown = make_texts(records, NULL, N);
    eval_advice advice[EVAL_FAULTS];
    int32_t n;
    t.public_texts = &p, t.record_texts = &r, t.records = &shown;
    t.public_cut = t.public_cut ? t.public_cut : whole;
    t.record_cut = t.record_cut ? t.record_cut : whole;
    t.n_tokens = 40;
    names[0] = '\0';
    assert_ok(eval_advise(&t, advice, &n, ERR));
    for (int32_t i = 0; i < n; i++) {
        assert_true(strlen(advice[i].text) > 40 && strstr(advice[i].text, "--") != NULL);
        strcat(strcat(names, i > 0 ? " " : ""), eval_fault_name(advice[i].fault));
    }
    return names;
}

TEST(test_good) {
    assert_string_equal(told(public_texts, of_records, (eval_tried){.is_base = true}), "");
    assert_string_equal(told(public_texts, of_records, (eval_tried){.is_instruction = true}), "");
}

TEST(test_each_fault) {
    assert_string_equal(
        told(public_texts, of_records, (eval_tried){.is_base = true, .is_instruction = true}),
        "base-model");
    assert_string_equal(told(refused, of_records, (eval_tried){.has_answer = true}), "opening");
    assert_string_equal(told(public_texts, refused, (eval_tried){0}), "opening no-effect");
    assert_string_equal(
        told(public_texts, of_records, (eval_tried){.public_cut = cut, .record_cut = cut}), "cut");
    assert_string_equal(told(circles, of_records, (eval_tried){0}), "circles");
    assert_string_equal(told(refrain, of_records, (eval_tried){0}), "");
    assert_string_equal(told(alike, of_records, (eval_tried){0}), "alike");
    assert_string_equal(told(public_texts, records, (eval_tried){0}), "copies");
    assert_string_equal(told(public_texts, deaf, (eval_tried){0}), "no-effect");
}

/* One text of many is no fault of the prompt: 1 of 8 cut, a quarter at most. */
TEST(test_few) {
    static const bool one[N] = {true};
    assert_string_equal(told(public_texts, of_records, (eval_tried){.public_cut = one}), "");
    assert_string_equal(
        told(public_texts, of_records, (eval_tried){.public_cut = one, .record_cut = one}), "");
}
