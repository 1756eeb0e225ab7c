/* prompts.c - see dpinfer/prompts.h. Texts and tokens are private memory: a record is in some. */
#define _GNU_SOURCE /* memmem */
#include "dpinfer/prompts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "dpinfer/prompt_texts.h"
#include "pipeline/prompts.h"
#include "tokenizer/tokenizer.h"

DPI_STRUCT_DEFAULTS(dpi_prompts_info, 0)

/* A text that the prompts own, private memory. data NULL: none. */
typedef struct owned_text {
    char *data;
    size_t n_bytes;
} owned_text;

/* Where a record stands. */
typedef enum record_place {
    IN_TEXT,  /* in private_text, for {reference} */
    IN_TURN,  /* it is an earlier answer */
    IN_LIST   /* it is an item of the list that the answer begins with */
} record_place;

struct dpi_prompts {
    const dpi_model *model;
    owned_text private_text, public_text, system, answer, answer_end;
    owned_text examples[DPI_EXAMPLES_MAX]; /* as earlier answers; behind them those of the run */
    int32_t n_examples, n_released, example_in;
    owned_text asked[DPI_EXAMPLES_MAX], answered[DPI_EXAMPLES_MAX]; /* [n_turns] earlier turns */
    int32_t n_turns;
    int32_t place; /* a record_place */
    size_t before; /* bytes of private_text before {reference} */
    int32_t *public_tokens, *answer_tokens; /* the latter [info.n_answer] */
    dpi_prompts_info info;
};

static const char placeholder[] = DPI_REFERENCE_MARK;
enum { PLACEHOLDER_BYTES = sizeof placeholder - 1, LABEL_BYTES = sizeof DPI_LABEL_MARK - 1 };

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

/* ---- Encoding ------------------------------------------------------------------------------- */

/* Earlier turns, and then a text of the user. */
typedef struct conversation {
    dpi_turn turns[DPI_TURNS_MAX];
    size_t n_turns;
    dpi_bytes text, begun; /* begun: the answer so far, before p->answer */
} conversation;

/* Behind the header of the answer, where a text begins anew. */
static dpi_status add_tokens(const dpi_prompts *p, dpi_bytes text, int32_t *ids, size_t *n,
                             dpi_error *err) {
    size_t more = 0;
    if (text.n_bytes > 0)
        DPI_TRY(dpi_tokenize(p->model, text.data, text.n_bytes, 0, ids + *n,
                             4 * text.n_bytes + 5, &more, err));
    *n += more;
    return DPI_STATUS_OK;
}

/* The tokens of the answer stand behind all others: they are the same in each prompt. */
static dpi_status encode(const dpi_prompts *p, const conversation *c, int32_t **tokens,
                         size_t *n_tokens, dpi_error *err) {
    const size_t n_answer = (size_t)p->info.n_answer;
    size_t n_bytes = p->system.n_bytes + c->text.n_bytes;
    for (size_t i = 0; i < c->n_turns; i++)
        n_bytes += c->turns[i].n_user + c->turns[i].n_answer;
    const size_t capacity = 4 * n_bytes + DPI_PROMPT_FRAME + c->n_turns * DPI_EARLIER_FRAME;
    const size_t n_begun = 4 * c->begun.n_bytes + 5;
    int32_t *ids = dpi_private_malloc((capacity + n_begun + n_answer) * sizeof *ids);
    if (!ids)
        return dpi_no_memory(err, "the prompts");
    dpi_status status =
        dpi_turns_encode(p->model, p->info.chat, p->system.data, p->system.n_bytes, c->turns,
                         c->n_turns, c->text.data, c->text.n_bytes, ids, capacity, n_tokens, err);
    if (status == DPI_STATUS_OK)
        status = add_tokens(p, c->begun, ids, n_tokens, err);
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
    size_t n = 0;
    if (!p->answer.data)
        return DPI_STATUS_OK;
    p->answer_tokens = dpi_private_malloc(capacity * sizeof *p->answer_tokens);
    if (!p->answer_tokens)
        return dpi_no_memory(err, "the prompts");
    DPI_TRY(add_tokens(p, view(p->answer), p->answer_tokens, &n, err));
    p->info.n_answer = (int32_t)n;
    return DPI_STATUS_OK;
}

/* The text as an earlier answer, which has the form of the one that is wanted. */
static dpi_status make_answer(const dpi_prompts *p, dpi_bytes text, owned_text *answer,
                              dpi_error *err) {
    return join(view(p->answer), text, view(p->answer_end), answer, err);
}

static void add_turn(owned_text asked, dpi_bytes answer, conversation *c) {
    c->turns[c->n_turns++] = (dpi_turn){asked.data, answer.data, asked.n_bytes, answer.n_bytes};
}

/* Of a list's texts, where they have one: the answer's end is a line end and this, whose last
 * character is a blank. */
static dpi_bytes heading(const dpi_prompts *p) {
    const owned_text *end = &p->answer_end;
    const bool is = end->n_bytes >= 3 && end->data[0] == '\n' && !memchr(" \n", end->data[1], 2) &&
                    end->data[end->n_bytes - 1] == ' ';
    return is ? (dpi_bytes){end->data + 1, end->n_bytes - 1} : (dpi_bytes){NULL, 0};
}

/* An answer as item k of a list, counted from 1, behind others. */
static dpi_status add_item(const dpi_prompts *p, int32_t k, dpi_bytes answer, owned_text *list,
                           dpi_error *err) {
    char number[16];
    const bool spaced = p->answer.n_bytes > 0 && memchr(" \n", p->answer.data[0], 2);
    const bool headed = heading(p).data; /* which stands before the number already */
    const bool ends = !headed && answer.n_bytes > 0 && answer.data[answer.n_bytes - 1] != '\n';
    owned_text item = {0}, longer = {0};
    snprintf(number, sizeof number, "%d%s", (int)k, headed ? "" : spaced ? "." : ".\n");
    DPI_TRY(join(bytes_of(number), answer, bytes_of(ends ? "\n" : ""), &item, err));
    const dpi_status status = join(view(*list), view(item), bytes_of(""), &longer, err);
    dpi_private_free(item.data);
    if (status == DPI_STATUS_OK) {
        dpi_private_free(list->data);
        *list = longer;
    }
    return status;
}

/* Released texts stand in both prompts: the first example of one is theirs, or that of all. */
static int32_t first_example(const dpi_prompts *p, bool with_examples) {
    return with_examples ? 0 : p->n_examples;
}
static int32_t all_examples(const dpi_prompts *p) { return p->n_examples + p->n_released; }

/* The list up to the number of the text that is wanted; record: as an answer, NULL: without one. */
static dpi_status make_list(const dpi_prompts *p, bool with_examples, const dpi_bytes *record,
                            owned_text *list, dpi_error *err) {
    int32_t k = 1;
    DPI_TRY(copy_text(heading(p), list, err));
    for (int32_t i = first_example(p, with_examples); i < all_examples(p); i++)
        DPI_TRY(add_item(p, k++, view(p->examples[i]), list, err));
    if (record)
        DPI_TRY(add_item(p, k++, *record, list, err));
    return add_item(p, k, (dpi_bytes){NULL, 0}, list, err);
}

/* A prompt that ends with `text` of the user, and the beginning of an answer. */
static dpi_status encode_answers(const dpi_prompts *p, bool with_examples, const dpi_bytes *record,
                                 dpi_bytes text, int32_t **tokens, size_t *n_tokens,
                                 dpi_error *err) {
    conversation c = {.text = text};
    owned_text list = {0};
    dpi_status status = DPI_STATUS_OK;
    if (p->place == IN_LIST)
        status = make_list(p, with_examples, record, &list, err);
    for (int32_t i = 0; i < p->n_turns; i++)
        add_turn(p->asked[i], view(p->answered[i]), &c);
    /* Examples and records are answers to the public prompt. */
    for (int32_t i = first_example(p, with_examples); i < all_examples(p); i++)
        if (p->place != IN_LIST)
            add_turn(p->public_text, view(p->examples[i]), &c);
    if (p->place == IN_TURN && record)
        add_turn(p->public_text, *record, &c);
    c.begun = view(list);
    if (status == DPI_STATUS_OK)
        status = encode(p, &c, tokens, n_tokens, err);
    dpi_private_free(list.data);
    return status;
}

/* The private prompt with the first n_bytes of a record. */
static dpi_status encode_private(const dpi_prompts *p, const char *record, size_t n_bytes,
                                 int32_t **tokens, size_t *n_tokens, dpi_error *err) {
    const size_t after = p->before + PLACEHOLDER_BYTES;
    const bool in_both = p->example_in == DPI_EXAMPLE_IN_BOTH, in_text = p->place == IN_TEXT;
    const owned_text *t = &p->private_text;
    owned_text whole = {0};
    if (in_text)
        DPI_TRY(join((dpi_bytes){t->data, p->before}, (dpi_bytes){record, n_bytes},
                     (dpi_bytes){t->data + after, t->n_bytes - after}, &whole, err));
    else
        DPI_TRY(make_answer(p, (dpi_bytes){record, n_bytes}, &whole, err));
    const dpi_bytes made = view(whole);
    dpi_status status = encode_answers(p, in_both, in_text ? NULL : &made,
                                       in_text ? made : view(p->public_text), tokens, n_tokens,
                                       err);
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

int32_t dpi_prompts_chat(int32_t chat, const dpi_model_info *model) {
    return chat != DPI_CHAT_AUTO ? chat : dpi_chat_without_thought(model->chat_template);
}

static dpi_status choose_chat(dpi_prompts *p, int32_t chat, dpi_error *err) {
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(p->model, &info, err));
    p->info.chat = dpi_prompts_chat(chat, &info);
    return DPI_STATUS_OK;
}

/* Each {label} becomes the label. */
static dpi_status put_label(dpi_bytes label, owned_text *text, dpi_error *err) {
    const dpi_bytes whole = view(*text);
    owned_text made = {0};
    dpi_status status = DPI_STATUS_OK;
    for (size_t at = 0; at < whole.n_bytes && status == DPI_STATUS_OK;) {
        const dpi_bytes rest = {whole.data + at, whole.n_bytes - at};
        const size_t n = dpi_find_label(rest);
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

char *dpi_label_in_prompt(const char *label, const char *meaning, int32_t described) {
    char *text = strdup(meaning ? meaning : label);
    for (char *c = text; c && *c && !meaning && described; c++)
        if (*c == '_')
            *c = ' ';
    return text;
}

static dpi_status put_labels(dpi_prompts *p, dpi_bytes label, dpi_error *err) {
    if (!label.data)
        return DPI_STATUS_OK;
    DPI_TRY(put_label(label, &p->system, err));
    DPI_TRY(put_label(label, &p->answer, err));
    DPI_TRY(put_label(label, &p->public_text, err));
    return put_label(label, &p->private_text, err);
}

/* A private prompt of the caller's may not begin a list. */
static bool is_listed(const dpi_prompt_options *o) {
    return o->description.data && o->answer.data && !o->private_prompt.data;
}

static dpi_status choose_public(dpi_prompts *p, const dpi_prompt_options *o, bool base,
                                dpi_error *err) {
    if (o->query.data)
        return join(bytes_of(base ? base_question : chat_question), o->query,
                    bytes_of(base ? base_answer : ""), &p->public_text, err);
    if (is_listed(o)) {
        const bool headed = heading(p).data;
        const char *order = headed ? DPI_HEADED_BEFORE : DPI_LISTED_BEFORE;
        const char *title = headed ? DPI_HEADED_BASE_BEFORE : DPI_LISTED_BASE_BEFORE;
        return join(bytes_of(base ? title : order), o->description,
                    bytes_of(base ? DPI_LISTED_BASE_AFTER : DPI_LISTED_AFTER), &p->public_text,
                    err);
    }
    if (o->description.data)
        return join(bytes_of(base ? DPI_DESCRIBED_BASE_BEFORE : DPI_DESCRIBED_BEFORE),
                    o->description,
                    bytes_of(base ? DPI_DESCRIBED_BASE_AFTER : DPI_DESCRIBED_AFTER),
                    &p->public_text, err);
    return copy_text(o->public_prompt.data ? o->public_prompt
                                           : bytes_of(base ? base_task : chat_task),
                     &p->public_text, err);
}

static dpi_status copy_turns(dpi_prompts *p, const dpi_prompt_options *o, dpi_error *err) {
    for (; p->n_turns < o->n_turns; p->n_turns++) {
        const dpi_turn *t = &o->turns[p->n_turns];
        DPI_TRY(copy_text((dpi_bytes){t->user, t->n_user}, &p->asked[p->n_turns], err));
        DPI_TRY(copy_text((dpi_bytes){t->answer, t->n_answer}, &p->answered[p->n_turns], err));
    }
    return DPI_STATUS_OK;
}

static dpi_status choose_texts(dpi_prompts *p, const dpi_prompt_options *o, dpi_error *err) {
    const bool base = p->info.chat == DPI_CHAT_NONE;
    const dpi_bytes none = {NULL, 0};
    const char *lead = base ? base_lead : o->query.data ? chat_query_lead : chat_lead;
    DPI_TRY(copy_text(o->system, &p->system, err));
    DPI_TRY(copy_text(o->answer, &p->answer, err));
    DPI_TRY(copy_text(o->answer_end, &p->answer_end, err));
    DPI_TRY(copy_turns(p, o, err));
    DPI_TRY(choose_public(p, o, base, err));
    p->example_in = o->example_in;
    p->place = o->private_prompt.data || o->query.data ? IN_TEXT
               : is_listed(o)                          ? IN_LIST
               : base || o->n_examples > 0             ? IN_TURN
                                                       : IN_TEXT;
    if (o->private_prompt.data)
        DPI_TRY(copy_text(o->private_prompt, &p->private_text, err));
    else if (p->place == IN_TEXT)
        DPI_TRY(join(bytes_of(lead), view(p->public_text), none, &p->private_text, err));
    DPI_TRY(put_labels(p, o->label, err));
    for (; p->n_examples < o->n_examples; p->n_examples++)
        DPI_TRY(make_answer(p, o->examples[p->n_examples], &p->examples[p->n_examples], err));
    if (p->place != IN_TEXT)
        return DPI_STATUS_OK;
    /* memmem, because a prompt may hold NUL bytes */
    const char *at = memmem(p->private_text.data, p->private_text.n_bytes, placeholder,
                            PLACEHOLDER_BYTES);
    p->before = (size_t)(at - p->private_text.data);
    return DPI_STATUS_OK;
}

static dpi_status encode_public(dpi_prompts *p, dpi_error *err) {
    size_t n = 0;
    DPI_TRY(encode_answers(p, true, NULL, view(p->public_text), &p->public_tokens, &n, err));
    if (n == 0) { /* a model without BOS, an empty prompt: it must have something to continue */
        dpi_private_free(p->public_tokens);
        p->public_tokens = NULL;
        DPI_TRY(encode_answers(p, true, NULL, bytes_of("\n"), &p->public_tokens, &n, err));
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

static dpi_status add_released(dpi_prompts *p, const dpi_bytes *texts, int32_t n,
                               dpi_error *err) {
    const int32_t most = DPI_EXAMPLES_MAX - p->n_examples - p->n_turns;
    DPI_TRY(dpi_check_range("released", n, 0, most, err));
    for (; p->n_released < n; p->n_released++)
        DPI_TRY(make_answer(p, texts[p->n_released], &p->examples[all_examples(p)], err));
    return DPI_STATUS_OK;
}

dpi_status dpi_prompts_create_released(const dpi_model *model, const dpi_prompt_options *options,
                                       const dpi_bytes *texts, int32_t n, int32_t n_room,
                                       dpi_prompts **prompts, dpi_error *err) {
    dpi_prompts *p;
    DPI_TRY(dpi_prompts_sketch(model, options, &p, err));
    dpi_status status = add_released(p, texts, n, err);
    if (status == DPI_STATUS_OK)
        status = encode_answer(p, err);
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

dpi_status dpi_prompts_create(const dpi_model *model, const dpi_prompt_options *options,
                              int32_t n_room, dpi_prompts **prompts, dpi_error *err) {
    return dpi_prompts_create_released(model, options, NULL, 0, n_room, prompts, err);
}

void dpi_prompts_free(dpi_prompts *p) {
    if (!p)
        return;
    dpi_private_free(p->private_text.data);
    dpi_private_free(p->public_text.data);
    dpi_private_free(p->system.data);
    dpi_private_free(p->answer.data);
    dpi_private_free(p->answer_end.data);
    for (int32_t i = 0; i < DPI_EXAMPLES_MAX; i++) {
        dpi_private_free(p->examples[i].data);
        dpi_private_free(p->asked[i].data);
        dpi_private_free(p->answered[i].data);
    }
    dpi_private_free(p->public_tokens);
    dpi_private_free(p->answer_tokens);
    free(p);
}

dpi_status dpi_prompts_info_get(const dpi_prompts *p, dpi_prompts_info *info, dpi_error *err) {
    DPI_CHECK_STRUCT(dpi_prompts_info, info, err);
    dpi_struct_give(info, &p->info, sizeof p->info);
    return DPI_STATUS_OK;
}

dpi_status dpi_prompts_of_record(const dpi_prompts *prompts, const char *record, size_t n_bytes,
                                 dpi_prompts **made, dpi_error *err) {
    size_t n = 0;
    dpi_prompts *p = calloc(1, sizeof *p);
    if (!p)
        return dpi_no_memory(err, "the prompts");
    p->model = prompts->model;
    p->info = prompts->info;
    dpi_status status = dpi_prompts_encode(prompts, record, n_bytes, &p->public_tokens, &n, err);
    if (status == DPI_STATUS_OK && !p->public_tokens)
        status = dpi_fail(err, DPI_STATUS_ARG, "record: not one character of it fits into the "
                                               "private prompt");
    if (status != DPI_STATUS_OK) {
        dpi_prompts_free(p);
        return status;
    }
    p->info.n_public = (int32_t)n;
    *made = p;
    return DPI_STATUS_OK;
}

const int32_t *dpi_prompts_public(const dpi_prompts *p) { return p->public_tokens; }
