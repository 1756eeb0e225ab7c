/* prompt_options.c - what can be said of the options of prompts without a model. See
 * dpinfer/prompts.h. */
#define _GNU_SOURCE /* memmem */
#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "pipeline/prompts.h"

static const char placeholder[] = DPI_REFERENCE_MARK, label_mark[] = DPI_LABEL_MARK;

DPI_STRUCT_DEFAULTS(dpi_prompt_options, .chat = DPI_CHAT_AUTO)

int dpi_count_references(dpi_bytes text) {
    int n = 0;
    for (size_t i = 0; i + sizeof placeholder - 1 <= text.n_bytes; i++)
        n += memcmp(text.data + i, placeholder, sizeof placeholder - 1) == 0;
    return n;
}

size_t dpi_find_label(dpi_bytes text) {
    const char *at = text.n_bytes > 0
                         ? memmem(text.data, text.n_bytes, label_mark, sizeof label_mark - 1)
                         : NULL;
    return at ? (size_t)(at - text.data) : text.n_bytes;
}

int32_t dpi_prompt_options_have_label(const dpi_prompt_options *o) {
    const dpi_bytes texts[] = {o->public_prompt, o->private_prompt, o->description, o->query,
                               o->system, o->answer};
    bool found = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        found |= dpi_find_label(texts[i]) < texts[i].n_bytes;
    return found;
}

static bool is_blank(dpi_bytes text) {
    for (size_t i = 0; i < text.n_bytes; i++)
        if (!memchr(" \t\r\n", text.data[i], 4))
            return false;
    return true;
}

/* The query is the task of both prompts, so that nothing is left for the other options to say. */
static dpi_status check_query(const dpi_prompt_options *o, dpi_error *err) {
    if (!o->query.data)
        return DPI_STATUS_OK;
    if (o->private_prompt.data || o->public_prompt.data)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "query and %s_prompt: allowed is one of them (the query is the public "
                        "prompt, and comes after the record in the private one)",
                        o->public_prompt.data ? "public" : "private");
    if (is_blank(o->query))
        return dpi_fail(err, DPI_STATUS_ARG, "query: found no text, allowed is a question");
    if (dpi_count_references(o->query) > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "query: found {reference}, which stands before the query in any case");
    return DPI_STATUS_OK;
}

/* A description makes the public prompt, and stands in the private one behind the record. */
static dpi_status check_description(const dpi_prompt_options *o, dpi_error *err) {
    if (!o->description.data)
        return DPI_STATUS_OK;
    if (o->public_prompt.data || o->query.data)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "description and %s: allowed is one of them (each is the public prompt)",
                        o->query.data ? "query" : "public_prompt");
    if (is_blank(o->description))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "description: found no text, allowed is what kind of documents these are");
    if (dpi_count_references(o->description) > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "description: found {reference}, which only the private prompt may hold");
    return DPI_STATUS_OK;
}

static dpi_status check_examples(const dpi_prompt_options *o, dpi_error *err) {
    if (o->n_examples < 0 || o->n_examples > DPI_EXAMPLES_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "examples: found %d, allowed 0..%d", o->n_examples,
                        DPI_EXAMPLES_MAX);
    for (int32_t i = 0; i < o->n_examples; i++)
        if (is_blank(o->examples[i]))
            return dpi_fail(err, DPI_STATUS_ARG, "examples: found no text in number %d", i + 1);
    if (o->example_in != DPI_EXAMPLE_IN_PUBLIC && o->example_in != DPI_EXAMPLE_IN_BOTH)
        return dpi_fail(err, DPI_STATUS_ARG, "example_in: found '%d', allowed a dpi_example_in",
                        o->example_in);
    return DPI_STATUS_OK;
}

static dpi_status check_turns(const dpi_prompt_options *o, dpi_error *err) {
    const int32_t most = DPI_EXAMPLES_MAX - o->n_examples;
    return o->n_turns >= 0 && o->n_turns <= most
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG, "turns: found %d, allowed 0..%d", o->n_turns, most);
}

dpi_status dpi_prompt_options_check(const dpi_prompt_options *o, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_prompt_options, o, err);
    if (!dpi_chat_name(o->chat))
        return dpi_fail(err, DPI_STATUS_ARG, "chat: found '%d', allowed is a dpi_chat", o->chat);
    if (o->max_reference_tokens < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "max_reference_tokens: found '%d', allowed 0 or more",
                        o->max_reference_tokens);
    if (o->n_text < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "n_text: found '%d', allowed 0 or more", o->n_text);
    DPI_TRY(check_query(o, err));
    DPI_TRY(check_description(o, err));
    DPI_TRY(check_examples(o, err));
    DPI_TRY(check_turns(o, err));
    int n = o->private_prompt.data ? dpi_count_references(o->private_prompt) : 1;
    if (n != 1)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "private_prompt: found %d times {reference}, allowed once", n);
    if (dpi_count_references(o->label) > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "label: found {reference}, which no label may hold");
    if (dpi_count_references(o->public_prompt) > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "public_prompt: found {reference}, which only the "
                                             "private prompt may hold");
    if (dpi_count_references(o->answer) > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "answer: found {reference}, which only the private "
                                             "prompt may hold");
    return DPI_STATUS_OK;
}

int32_t dpi_prompt_is_order(dpi_bytes text) {
    static const char *const orders[] = {"please", "write", "generate", "create", "give", "compose",
                                         "produce", "answer", "summarize", "summarise", "imagine"};
    size_t at = 0, n = 0;
    char first[16] = "";
    while (at < text.n_bytes && memchr(" \t\r\n", text.data[at], 4))
        at++;
    for (; at + n < text.n_bytes && n < sizeof first - 1; n++) {
        const char small = (char)(text.data[at + n] | 0x20);
        if (small < 'a' || small > 'z')
            break;
        first[n] = small;
    }
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(first, orders[i]) == 0)
            return 1;
    return 0;
}
