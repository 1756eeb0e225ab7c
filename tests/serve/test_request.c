/* test_request.c - bodies of requests: what is read, and what is refused by name. */
#include "serve/request.h"

#include <jansson.h>

#include "dpinfer/memory.h"
#include "tests/support/support.h"

static const request_defaults defaults = {.tau = .8, .top_k = 40, .n_vocab = 50};

static bool parse(const char *body, bool is_chat, request *r, refusal *why) {
    *why = (refusal){0};
    return request_parse(body, strlen(body), is_chat, &defaults, r, why);
}

TEST(reads_a_prompt) {
    request r;
    refusal why;
    assert_true(parse("{\"prompt\": \"a\\u00e9\"}", false, &r, &why));
    assert_string_equal(r.user, "a\xc3\xa9");
    assert_int_equal(r.n_user, 3);
    assert_null(r.system);
    assert_true(r.tau == .8);
    assert_int_equal(r.top_k, 40);
    assert_int_equal(r.n_tokens, 0);
    assert_false(r.is_seeded || r.is_streamed || r.includes_usage || r.is_chat);
    request_free(&r);
    assert_true(parse("{\"prompt\": [\"x\"], \"temperature\": 0, \"top_k\": 0, \"max_tokens\": 7, "
                      "\"seed\": -1, \"stream\": true, \"n\": 1, \"top_p\": 1.0, \"stop\": null, "
                      "\"stream_options\": {\"include_usage\": true}}",
                      false, &r, &why));
    assert_true(r.tau == 0 && r.top_k == 0 && r.n_tokens == 7);
    assert_true(r.is_seeded && r.seed == UINT64_MAX && r.is_streamed && r.includes_usage);
    assert_true(r.top_p == 1 && !r.grammar);
    request_free(&r);
    assert_true(parse("{\"prompt\": \"x\", \"stop\": [\"\\n\", \"end\"]}", false, &r, &why));
    assert_true(r.n_stops == 2 && r.stops[0].n_bytes == 1 && r.stops[1].n_bytes == 3);
    assert_memory_equal(r.stops[1].data, "end", 3);
    request_free(&r);
    assert_true(parse("{\"prompt\": \"x\", \"logit_bias\": {\"7\": -1.5, \"42\": 100}, "
                      "\"presence_penalty\": 2}",
                      false, &r, &why));
    const dpi_wording w = request_wording(&r);
    assert_true(w.n_biases == 2 && w.biases[0].token == 7 && w.biases[0].bias == -1.5);
    assert_true(w.biases[1].token == 42 && w.biases[1].bias == 100);
    assert_float_equal(w.repeat_penalty, 1.1331484530668263, 1e-12); /* e^(2 / 16) */
    request_free(&r);
}

TEST(reads_messages) {
    request r;
    refusal why;
    assert_true(parse("{\"messages\": [{\"role\": \"developer\", \"content\": \"S\"}, {\"role\": "
                      "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": "
                      "\"text\", \"text\": \"b\"}]}], \"max_completion_tokens\": 3}",
                      true, &r, &why));
    assert_string_equal(r.system, "S");
    assert_string_equal(r.user, "ab");
    assert_int_equal(r.n_tokens, 3);
    assert_true(r.is_chat);
    request_free(&r);
    assert_true(parse("{\"messages\": [{\"role\": \"user\", \"content\": \"One?\"}, {\"role\": "
                      "\"assistant\", \"content\": \"A.\", \"refusal\": null}, {\"role\": "
                      "\"user\", \"content\": \"Two?\"}], \"top_p\": 0.5}",
                      true, &r, &why));
    assert_true(r.n_turns == 1 && !r.system && r.top_p == .5);
    assert_string_equal(r.turns[0].user, "One?");
    assert_string_equal(r.turns[0].answer, "A.");
    assert_true(r.turns[0].n_user == 4 && r.turns[0].n_answer == 2);
    assert_string_equal(r.user, "Two?");
    request_free(&r);
}

#define FORM(value) "{\"prompt\": \"x\", \"response_format\": " value "}"
#define SCHEMA(schema) FORM("{\"type\": \"json_schema\", \"json_schema\": " schema "}")

/* What texts each form has. */
TEST(reads_a_form) {
    static const struct {
        const char *body, *in, *out;
    } forms[] = {
        {FORM("{\"type\": \"json_object\"}"), "{\"a\": [1, {\"b\": null}]}", "[1]"},
        {SCHEMA("{\"name\": \"n\", \"strict\": true, \"schema\": {\"type\": \"object\", "
                "\"properties\": {\"z\": {\"type\": \"integer\"}, \"a\": {\"const\": 2.5}}, "
                "\"required\": [\"z\", \"a\"]}}"),
         "{\"z\": 1, \"a\": 2.5}", "{\"a\": 2.5, \"z\": 1}"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        request r;
        refusal why;
        int32_t in, out;
        assert_true(parse(forms[i].body, false, &r, &why));
        assert_ok(dpi_grammar_accepts(r.grammar, forms[i].in, strlen(forms[i].in), &in, ERR));
        assert_ok(dpi_grammar_accepts(r.grammar, forms[i].out, strlen(forms[i].out), &out, ERR));
        assert_true(in && !out);
        request_free(&r);
    }
}

TEST(refuses_by_name) {
    static const struct {
        const char *body, *message;
    } bodies[] = {
        {"", "the body is empty"},
        {"{\"prompt\": \"x\"", "not JSON"},
        {"{\"prompt\": \"x\\u0000\"}", "the body has the character NUL in a string"},
        {"{\"x\\u0000\": 1}", "the body has the character NUL in a string"},
        {"{\"prompt\": \"\xff\"}", "not JSON"},
        {"{\"prompt\": \"x\"} {}", "not JSON"},
        {"{\"prompt\": \"x\", \"prompt\": \"y\"}", "not JSON"},
        {"3", "not a JSON object"},
        {"null", "not a JSON object"},
        {"{\"prompt\": \"x\", \"seed\": 9223372036854775808}", "number that is too large"},
        {"[]", "not a JSON object"},
        {"{}", "prompt: there is no text"},
        {"{\"prompt\": \"\"}", "prompt: there is no text"},
        {"{\"prompt\": 3}", "prompt: allowed is one string"},
        {"{\"messages\": []}", "'messages' is not a field here"},
        {"{\"prompt\": \"x\", \"n\": 2}", "n: found 2, allowed 1"},
        {"{\"prompt\": \"x\", \"logprobs\": 5}", "logprobs: found 5, allowed false"},
        {"{\"prompt\": \"x\", \"stop\": [\"y\", 3]}", "stop: found [\"y\",3], allowed up to 16"},
        {"{\"prompt\": \"x\", \"stop\": \"\"}", "stop: found \"\", allowed up to 16 strings"},
        {"{\"prompt\": \"x\", \"logit_bias\": {\"1\": 101}}", "logit_bias: found {\"1\":101}"},
        {"{\"prompt\": \"x\", \"logit_bias\": {\"the\": 1}}", "logit_bias: found {\"the\":1}"},
        {"{\"prompt\": \"x\", \"logit_bias\": 1}", "logit_bias: found 1, allowed up to 300"},
        {"{\"prompt\": \"x\", \"logit_bias\": {\"49\": 1, \"50\": 1}}",
         "logit_bias: found the token 50, allowed are those of the model, 0..49"},
        {"{\"prompt\": \"x\", \"presence_penalty\": -1}", "presence_penalty: found -1, allowed"},
        {FORM("\"json\""), "response_format: found \"json\", allowed the type text, json_object"},
        {FORM("{\"type\": \"json_object\", \"schema\": {}}"),
         "response_format: 'schema' is not a field of a json_object"},
        {SCHEMA("{\"name\": \"n\"}"), "response_format.json_schema.schema: found none"},
        {SCHEMA("{\"schema\": true}"), "response_format.json_schema.schema: found no object"},
        {SCHEMA("{\"schema\": {}, \"x\": 1}"), "response_format: 'x' is not a field of a json_sch"},
        {SCHEMA("{\"schema\": {\"pattern\": \"a\"}}"),
         "response_format: JSON schema: the keyword 'pattern' is not understood"},
        {"{\"prompt\": \"x\", \"top_p\": 0}", "top_p: found 0, allowed 0 < x <= 1"},
        {"{\"prompt\": \"x\", \"top_p\": 1.5}", "top_p: found 1.5, allowed 0 < x <= 1"},
        {"{\"prompt\": \"x\", \"top_p\": 0.9, \"dataset\": \"d\", \"privacy\": {\"epsilon\": 1}}",
         "top_p: found 0.9, allowed 1 with a dataset"},
        {"{\"prompt\": \"x\", \"frequency_penalty\": 1}", "frequency_penalty: found 1, allowed 0"},
        {"{\"prompt\": \"x\", \"temperature\": 0.001}", "temperature: found 0.001"},
        {"{\"prompt\": \"x\", \"temperature\": 101}", "allowed 0, .01..100"},
        {"{\"prompt\": \"x\", \"max_tokens\": 0}", "max_tokens: found 0, allowed 1..1048576"},
        {"{\"prompt\": \"x\", \"max_tokens\": 1.5}", "max_tokens: found 1.5"},
        {"{\"prompt\": \"x\", \"stream\": 1}", "stream: found 1, allowed true, false"},
        {"{\"prompt\": \"x\", \"dataset\": \"letters\"}", "privacy.epsilon: there is none"},
        {"{\"prompt\": \"x\", \"stream_options\": {\"a\": 1}}", "stream_options: found"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        request r;
        refusal why;
        assert_false(parse(bodies[i].body, false, &r, &why));
        assert_int_equal(why.http, 400);
        if (!strstr(why.message, bodies[i].message))
            fail_msg("%s: '%s' and not '%s'", bodies[i].body, why.message, bodies[i].message);
        request_free(&r);
    }
}

/* Turns of a conversation have an order, and an end. */
TEST(refuses_turns) {
    static const struct {
        const char *roles, *message; /* of the system, the user, the assistant, a tool */
    } chats[] = {
        {"", "messages: found 0, allowed"},
        {"ua", "messages: found 2, allowed one of the system, or none, and then 1..127"},
        {"uu", "messages: found 2, allowed"},
        {"sua", "messages: found 3"},
        {"uuu", "the role of message 2 must be 'assistant'"},
        {"usu", "the role of message 2 must be 'assistant'"},
        {"aau", "the role of message 1 must be 'user'"},
        {"suau", NULL},
        {"sutu", "the role of message 3 must be 'assistant'"},
        {"s", "the role of message 1 must be 'user'"},
    };
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
        char body[1024] = "{\"messages\": [";
        request r;
        refusal why;
        for (const char *role = chats[i].roles; *role; role++)
            sprintf(body + strlen(body), "%s{\"role\": \"%s\", \"content\": \"x\"}",
                    role > chats[i].roles ? ", " : "",
                    *role == 's'   ? "system"
                    : *role == 'u' ? "user"
                    : *role == 'a' ? "assistant"
                                   : "tool");
        strcat(body, "]}");
        assert_int_equal(parse(body, true, &r, &why), !chats[i].message);
        if (chats[i].message && !strstr(why.message, chats[i].message))
            fail_msg("%s: '%s' and not '%s'", chats[i].roles, why.message, chats[i].message);
        request_free(&r);
    }
}

/* As many turns as the library has room for, and one more. */
TEST(bounds_turns) {
    static char body[16384] = "{\"messages\": [";
    static const char pair[] = "{\"role\": \"user\", \"content\": \"x\"}, "
                               "{\"role\": \"assistant\", \"content\": \"\"}, ";
    for (int n = 0; n < REQUEST_TURNS_MAX + 1; n++) {
        request r;
        refusal why;
        strcat(body, pair);
        char whole[sizeof body];
        snprintf(whole, sizeof whole, "%s{\"role\": \"user\", \"content\": \"y\"}]}", body);
        assert_int_equal(parse(whole, true, &r, &why), n < REQUEST_TURNS_MAX);
        request_free(&r);
    }
}

SETUP { json_set_alloc_funcs(dpi_private_malloc, dpi_private_free); }
