/* prompts.c - see dpinfer/prompts.h. Texts and tokens are private memory: a record is in some. */
#define _GNU_SOURCE /* memmem */
#include "dpinfer/prompts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/prompt_texts.h"
#include "pipeline/prompts.h"

void dpi_prompts_info_init(dpi_prompts_info *info) {
    *info = (dpi_prompts_info){.struct_size = sizeof *info};
}

/* A text that the prompts own, private memory. data NULL: none. */
typedef struct owned_text {
    char *data;
    size_t n_bytes;
} owned_text;

struct dpi_prompts {
    const dpi_model *model;
    owned_text private_text, public_text, system, answer, answer_end;
    owned_text examples[DPI_EXAMPLES_MAX]; /* as earlier answers */
    int32_t n_examples, example_in;
    bool is_said;  /* the record is an earlier answer; else it is in private_text */
    size_t before; /* bytes of private_text before {reference} */
    int32_t *public_tokens, *answer_tokens; /* the latter [info.n_answer] */
    dpi_prompts_info info;
};

static const char placeholder[] = "{reference}", label_mark[] = "{label}";
enum { PLACEHOLDER_BYTES = sizeof placeholder - 1, LABEL_BYTES = sizeof label_mark - 1 };

/* The defaults. The private prompt is the public one after a record, so that both ask for the
 * same thing whatever public prompt is given. */
static const char base_lead[] = "{reference}\n\n"; /* of a query */
static const char base_task[] = "";
static const char chat_lead[] = DPI_CHAT_BEFORE "{reference}" DPI_CHAT_AFTER;
static const char chat_task[] = DPI_CHAT_TASK;

/* The same with a query: the task is the question, alone or after a record. */
static const char base_question[] = "Question: ", base_answer[] = "\nAnswer:";
static const char chat_query_lead[] =
    "Here is one document that may help with the question below:\n\n{reference}\n\n"
    "The document ends here.\n\n";
static const char chat_question[] =
    "Please answer this question in a few sentences. Do not give names, dates or other "
    "particulars of any one document. Output only the answer.\n\nQuestion: ";

/* ---- Texts ---------------------------------------------------------------------------------- */

static dpi_bytes bytes_of(const char *string) { return (dpi_bytes){string, strlen(string)}; }

/* The three texts one after the other. Errors: MEMORY. */
static dpi_status join(dpi_bytes a, dpi_bytes b, dpi_bytes c, owned_text *text, dpi_error *err) {
    char *data = dpi_private_malloc(a.n_bytes + b.n_bytes + c.n_bytes + 1);
    if (!data)
        return dpi_no_memory(err, "the prompts");
    const dpi_bytes parts[] = {a, b, c};
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (parts[i].n_bytes > 0)
            memcpy(data + n, parts[i].data, parts[i].n_bytes);
        n += parts[i].n_bytes;
    }
    data[n] = '\0';
    *text = (owned_text){data, n};
    return DPI_STATUS_OK;
}

static dpi_status copy_text(dpi_bytes from, owned_text *text, dpi_error *err) {
    const dpi_bytes none = {NULL, 0};
    return from.data ? join(from, none, none, text, err) : DPI_STATUS_OK;
}

static dpi_bytes view(owned_text text) { return (dpi_bytes){text.data, text.n_bytes}; }

/* ---- Options -------------------------------------------------------------------------------- */

void dpi_prompt_options_init(dpi_prompt_options *options) {
    *options = (dpi_prompt_options){.struct_size = sizeof *options, .chat = DPI_CHAT_AUTO};
}

int dpi_count_references(dpi_bytes text) {
    int n = 0;
    for (size_t i = 0; i + PLACEHOLDER_BYTES <= text.n_bytes; i++)
        n += memcmp(text.data + i, placeholder, PLACEHOLDER_BYTES) == 0;
    return n;
}

/* Bytes before the next {label}; all of them: there is none. */
static size_t find_label(dpi_bytes text) {
    const char *at = text.n_bytes > 0 ? memmem(text.data, text.n_bytes, label_mark, LABEL_BYTES)
                                      : NULL;
    return at ? (size_t)(at - text.data) : text.n_bytes;
}

int32_t dpi_prompt_options_have_label(const dpi_prompt_options *o) {
    const dpi_bytes texts[] = {o->public_prompt, o->private_prompt, o->description, o->query,
                               o->system, o->answer};
    bool found = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        found |= find_label(texts[i]) < texts[i].n_bytes;
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

dpi_status dpi_prompt_options_check(const dpi_prompt_options *o, dpi_error *err) {
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_prompt_options: struct_size is %zu, must be %zu",
                        o->struct_size, sizeof *o);
    if (!dpi_chat_name(o->chat))
        return dpi_fail(err, DPI_STATUS_ARG, "chat: found '%d', allowed is a dpi_chat", o->chat);
    if (o->max_reference_tokens < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "max_reference_tokens: found '%d', allowed 0 or more",
                        o->max_reference_tokens);
    DPI_TRY(check_query(o, err));
    DPI_TRY(check_description(o, err));
    DPI_TRY(check_examples(o, err));
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

/* ---- Encoding ------------------------------------------------------------------------------- */

/* Earlier turns, and then a text of the user. */
typedef struct conversation {
    dpi_turn turns[DPI_TURNS_MAX];
    size_t n_turns;
    dpi_bytes text;
} conversation;

/* The tokens of the answer stand behind all others: they are the same in each prompt. */
static dpi_status encode(const dpi_prompts *p, const conversation *c, int32_t **tokens,
                         size_t *n_tokens, dpi_error *err) {
    const size_t n_answer = (size_t)p->info.n_answer;
    size_t n_bytes = p->system.n_bytes + c->text.n_bytes;
    for (size_t i = 0; i < c->n_turns; i++)
        n_bytes += c->turns[i].n_user + c->turns[i].n_answer;
    const size_t capacity = 4 * n_bytes + DPI_PROMPT_FRAME + c->n_turns * DPI_EARLIER_FRAME;
    int32_t *ids = dpi_private_malloc((capacity + n_answer) * sizeof *ids);
    if (!ids)
        return dpi_no_memory(err, "the prompts");
    dpi_status status =
        dpi_turns_encode(p->model, p->info.chat, p->system.data, p->system.n_bytes, c->turns,
                         c->n_turns, c->text.data, c->text.n_bytes, ids, capacity, n_tokens, err);
    if (status != DPI_STATUS_OK) {
        dpi_private_free(ids);
        return status;
    }
    if (n_answer > 0)
        memcpy(ids + *n_tokens, p->answer_tokens, n_answer * sizeof *ids);
    *n_tokens += n_answer;
    *tokens = ids;
    return DPI_STATUS_OK;
}

static dpi_status encode_answer(dpi_prompts *p, dpi_error *err) {
    const size_t capacity = 4 * p->answer.n_bytes + 5;
    size_t n;
    if (!p->answer.data)
        return DPI_STATUS_OK;
    p->answer_tokens = dpi_private_malloc(capacity * sizeof *p->answer_tokens);
    if (!p->answer_tokens)
        return dpi_no_memory(err, "the prompts");
    DPI_TRY(dpi_tokenize(p->model, p->answer.data, p->answer.n_bytes, 0, p->answer_tokens, capacity,
                         &n, err));
    p->info.n_answer = (int32_t)n;
    return DPI_STATUS_OK;
}

/* The text as an earlier answer, which has the form of the one that is wanted. */
static dpi_status make_answer(const dpi_prompts *p, dpi_bytes text, owned_text *answer,
                              dpi_error *err) {
    return join(view(p->answer), text, view(p->answer_end), answer, err);
}

/* The text is an answer to the public prompt. */
static void add_turn(const dpi_prompts *p, dpi_bytes answer, conversation *c) {
    const owned_text *asked = &p->public_text;
    c->turns[c->n_turns++] = (dpi_turn){asked->data, answer.data, asked->n_bytes, answer.n_bytes};
}

static void add_examples(const dpi_prompts *p, conversation *c) {
    for (int32_t i = 0; i < p->n_examples; i++)
        add_turn(p, view(p->examples[i]), c);
}

/* The private prompt with the first n_bytes of a record. */
static dpi_status encode_private(const dpi_prompts *p, const char *record, size_t n_bytes,
                                 int32_t **tokens, size_t *n_tokens, dpi_error *err) {
    const size_t after = p->before + PLACEHOLDER_BYTES;
    const owned_text *t = &p->private_text;
    owned_text whole = {0};
    conversation c = {.n_turns = 0};
    if (p->example_in == DPI_EXAMPLE_IN_BOTH)
        add_examples(p, &c);
    if (p->is_said)
        DPI_TRY(make_answer(p, (dpi_bytes){record, n_bytes}, &whole, err));
    else
        DPI_TRY(join((dpi_bytes){t->data, p->before}, (dpi_bytes){record, n_bytes},
                     (dpi_bytes){t->data + after, t->n_bytes - after}, &whole, err));
    c.text = p->is_said ? view(p->public_text) : view(whole);
    if (p->is_said)
        add_turn(p, view(whole), &c);
    dpi_status status = encode(p, &c, tokens, n_tokens, err);
    dpi_private_free(whole.data);
    return status;
}

/* Largest m <= n that does not split a UTF-8 character of text [n_bytes]. Bytes that are not
 * UTF-8 are characters of their own. */
static size_t whole_characters(const char *text, size_t n_bytes, size_t n) {
    size_t m = n;
    while (m < n_bytes && m > 0 && n - m < 3 && ((unsigned char)text[m] & 0xc0) == 0x80)
        m--;
    return m;
}

dpi_status dpi_prompts_encode(const dpi_prompts *p, const char *record, size_t n_bytes,
                              int32_t **tokens, size_t *n_tokens, dpi_error *err) {
    /* `fits` bytes fit, `over` bytes do not; up from a short prefix, so that the work depends on
     * the limit and not on the length of the record. */
    const size_t n_limit = (size_t)p->info.n_limit;
    size_t fits = 0, over = n_bytes + 1, probe = 8 * n_limit;
    int32_t *best = NULL;
    size_t n_best = 0;
    while (over - fits > 1) {
        probe = probe < n_bytes ? probe : n_bytes;
        size_t m = whole_characters(record, n_bytes, probe), n = n_limit + 1;
        int32_t *ids = NULL;
        if (m > fits) {
            dpi_status status = encode_private(p, record, m, &ids, &n, err);
            if (status != DPI_STATUS_OK) {
                dpi_private_free(best);
                return status;
            }
        }
        if (n <= n_limit) {
            dpi_private_free(best);
            best = ids;
            n_best = n;
            fits = m;
        } else {
            dpi_private_free(ids);
            over = probe;
        }
        probe = over <= n_bytes ? fits + (over - fits) / 2 : 2 * probe;
    }
    *tokens = best;
    *n_tokens = n_best;
    return DPI_STATUS_OK;
}

/* ---- Creating ------------------------------------------------------------------------------- */

static dpi_status choose_chat(dpi_prompts *p, int32_t chat, dpi_error *err) {
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(p->model, &info, err));
    p->info.chat = chat != DPI_CHAT_AUTO                    ? chat
                   : info.chat_template == DPI_CHAT_UNKNOWN ? DPI_CHAT_NONE
                                                            : info.chat_template;
    return DPI_STATUS_OK;
}

/* Each {label} becomes the label. */
static dpi_status put_label(dpi_bytes label, owned_text *text, dpi_error *err) {
    const dpi_bytes whole = view(*text);
    owned_text made = {0};
    dpi_status status = DPI_STATUS_OK;
    for (size_t at = 0; at < whole.n_bytes && status == DPI_STATUS_OK;) {
        const dpi_bytes rest = {whole.data + at, whole.n_bytes - at};
        const size_t n = find_label(rest);
        const bool found = n < rest.n_bytes;
        owned_text longer = {0};
        status = join(view(made), (dpi_bytes){rest.data, n}, found ? label : (dpi_bytes){NULL, 0},
                      &longer, err);
        if (status == DPI_STATUS_OK) {
            dpi_private_free(made.data);
            made = longer;
        }
        at += n + (found ? LABEL_BYTES : 0);
    }
    if (status != DPI_STATUS_OK || whole.n_bytes == 0) {
        dpi_private_free(made.data);
        return status;
    }
    dpi_private_free(text->data);
    *text = made;
    return DPI_STATUS_OK;
}

static dpi_status put_labels(dpi_prompts *p, dpi_bytes label, dpi_error *err) {
    if (!label.data)
        return DPI_STATUS_OK;
    DPI_TRY(put_label(label, &p->system, err));
    DPI_TRY(put_label(label, &p->answer, err));
    DPI_TRY(put_label(label, &p->public_text, err));
    return put_label(label, &p->private_text, err);
}

static dpi_status choose_public(dpi_prompts *p, const dpi_prompt_options *o, bool base,
                                dpi_error *err) {
    if (o->query.data)
        return join(bytes_of(base ? base_question : chat_question), o->query,
                    bytes_of(base ? base_answer : ""), &p->public_text, err);
    if (o->description.data)
        return join(bytes_of(base ? DPI_DESCRIBED_BASE_BEFORE : DPI_DESCRIBED_BEFORE),
                    o->description,
                    bytes_of(base ? DPI_DESCRIBED_BASE_AFTER : DPI_DESCRIBED_AFTER),
                    &p->public_text, err);
    return copy_text(o->public_prompt.data ? o->public_prompt
                                           : bytes_of(base ? base_task : chat_task),
                     &p->public_text, err);
}

static dpi_status choose_texts(dpi_prompts *p, const dpi_prompt_options *o, dpi_error *err) {
    const bool base = p->info.chat == DPI_CHAT_NONE;
    const dpi_bytes none = {NULL, 0};
    const char *lead = base ? base_lead : o->query.data ? chat_query_lead : chat_lead;
    DPI_TRY(copy_text(o->system, &p->system, err));
    DPI_TRY(copy_text(o->answer, &p->answer, err));
    DPI_TRY(copy_text(o->answer_end, &p->answer_end, err));
    DPI_TRY(choose_public(p, o, base, err));
    p->example_in = o->example_in;
    p->is_said = !o->private_prompt.data && !o->query.data &&
                 (base || o->n_examples > 0);
    if (o->private_prompt.data)
        DPI_TRY(copy_text(o->private_prompt, &p->private_text, err));
    else if (!p->is_said)
        DPI_TRY(join(bytes_of(lead), view(p->public_text), none, &p->private_text, err));
    DPI_TRY(put_labels(p, o->label, err));
    for (; p->n_examples < o->n_examples; p->n_examples++)
        DPI_TRY(make_answer(p, o->examples[p->n_examples], &p->examples[p->n_examples], err));
    if (p->is_said)
        return DPI_STATUS_OK;
    /* memmem, because a prompt may hold NUL bytes */
    const char *at = memmem(p->private_text.data, p->private_text.n_bytes, placeholder,
                            PLACEHOLDER_BYTES);
    p->before = (size_t)(at - p->private_text.data);
    return DPI_STATUS_OK;
}

static dpi_status encode_public(dpi_prompts *p, dpi_error *err) {
    conversation c = {.text = view(p->public_text)};
    size_t n = 0;
    add_examples(p, &c);
    DPI_TRY(encode(p, &c, &p->public_tokens, &n, err));
    if (n == 0) { /* a model without BOS, an empty prompt: it must have something to continue */
        dpi_private_free(p->public_tokens);
        p->public_tokens = NULL;
        c.text = bytes_of("\n");
        DPI_TRY(encode(p, &c, &p->public_tokens, &n, err));
    }
    p->info.n_public = (int32_t)n;
    return DPI_STATUS_OK;
}

/* n_prefix, from records that begin in different ways: what stands before {reference} may merge
 * with a record. One that begins in yet another way shares less, which the generation sees. */
static dpi_status find_prefix(dpi_prompts *p, dpi_error *err) {
    static const char *const records[] = {"The", "a", "1", " x", "\n", "\"", "\xc3\x89"};
    int32_t *first = NULL;
    size_t n_prefix = 0;
    dpi_status status = DPI_STATUS_OK;
    for (size_t i = 0; i < sizeof records / sizeof *records && status == DPI_STATUS_OK; i++) {
        int32_t *ids = NULL;
        size_t n_ids, n = 0;
        status = encode_private(p, records[i], strlen(records[i]), &ids, &n_ids, err);
        if (status == DPI_STATUS_OK && !first) {
            first = ids;
            n_prefix = n_ids;
            continue;
        }
        while (status == DPI_STATUS_OK && n < n_ids && n < n_prefix && ids[n] == first[n])
            n++;
        n_prefix = n;
        dpi_private_free(ids);
    }
    dpi_private_free(first);
    p->info.n_prefix = (int32_t)n_prefix;
    return status;
}

static dpi_status find_limit(dpi_prompts *p, int32_t n_room, int32_t max_reference_tokens,
                             dpi_error *err) {
    int32_t *frame;
    size_t n_frame;
    if (p->info.n_public > n_room)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the public prompt%s has %d tokens, allowed %d (the context less n_tokens)",
                        p->n_examples > 0 ? " with its examples" : "", p->info.n_public, n_room);
    DPI_TRY(encode_private(p, "", 0, &frame, &n_frame, err));
    dpi_private_free(frame);
    if (n_room <= 0 || n_frame >= (size_t)n_room)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the private prompt%s without a record has %zu tokens, allowed less than "
                        "%d (the context less n_tokens)",
                        p->example_in == DPI_EXAMPLE_IN_BOTH ? " with the examples" : "", n_frame,
                        n_room);
    p->info.n_frame = (int32_t)n_frame;
    p->info.n_limit = n_room;
    if (max_reference_tokens > 0 && max_reference_tokens < n_room - p->info.n_frame)
        p->info.n_limit = p->info.n_frame + max_reference_tokens;
    return DPI_STATUS_OK;
}

dpi_status dpi_prompts_sketch(const dpi_model *model, const dpi_prompt_options *options,
                              dpi_prompts **prompts, dpi_error *err) {
    DPI_TRY(dpi_prompt_options_check(options, err));
    dpi_prompts *p = calloc(1, sizeof *p);
    if (!p)
        return dpi_no_memory(err, "the prompts");
    p->model = model;
    dpi_prompts_info_init(&p->info);
    dpi_status status = choose_chat(p, options->chat, err);
    if (status == DPI_STATUS_OK)
        status = choose_texts(p, options, err);
    if (status == DPI_STATUS_OK)
        *prompts = p;
    else
        dpi_prompts_free(p);
    return status;
}

dpi_bytes dpi_prompts_public_text(const dpi_prompts *p) { return view(p->public_text); }
dpi_bytes dpi_prompts_private_text(const dpi_prompts *p) { return view(p->private_text); }

dpi_status dpi_prompts_create(const dpi_model *model, const dpi_prompt_options *options,
                              int32_t n_room, dpi_prompts **prompts, dpi_error *err) {
    dpi_prompts *p;
    DPI_TRY(dpi_prompts_sketch(model, options, &p, err));
    dpi_status status = encode_answer(p, err);
    if (status == DPI_STATUS_OK)
        status = encode_public(p, err);
    if (status == DPI_STATUS_OK)
        status = find_limit(p, n_room, options->max_reference_tokens, err);
    if (status == DPI_STATUS_OK)
        status = find_prefix(p, err);
    if (status == DPI_STATUS_OK)
        *prompts = p;
    else
        dpi_prompts_free(p);
    return status;
}

void dpi_prompts_free(dpi_prompts *p) {
    if (!p)
        return;
    dpi_private_free(p->private_text.data);
    dpi_private_free(p->public_text.data);
    dpi_private_free(p->system.data);
    dpi_private_free(p->answer.data);
    dpi_private_free(p->answer_end.data);
    for (int32_t i = 0; i < p->n_examples; i++)
        dpi_private_free(p->examples[i].data);
    dpi_private_free(p->public_tokens);
    dpi_private_free(p->answer_tokens);
    free(p);
}

dpi_status dpi_prompts_info_get(const dpi_prompts *p, dpi_prompts_info *info, dpi_error *err) {
    if (info->struct_size != sizeof *info)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_prompts_info: struct_size is %zu, must be %zu",
                        info->struct_size, sizeof *info);
    *info = p->info;
    return DPI_STATUS_OK;
}

const int32_t *dpi_prompts_public(const dpi_prompts *p) { return p->public_tokens; }
