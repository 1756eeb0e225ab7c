/* prompts.c - see prompts.h. */
#include "tools/prompts.h"
#include "dpinfer/prompt_texts.h"

#include <errno.h>
#include <string.h>

static const char placeholder[] = "{reference}";
enum { PLACEHOLDER_BYTES = sizeof placeholder - 1 };

/* The defaults. The private prompt is the public one after a record, so that both ask for the
 * same thing whatever --public-prompt says. Base models continue: nothing before, or a
 * document, stands before the text that they write. */
static const char base_lead[] = "{reference}\n\n";
static const char base_task[] = "";
static const char chat_lead[] = DPI_CHAT_BEFORE "{reference}" DPI_CHAT_AFTER;
static const char chat_task[] = DPI_CHAT_TASK;

/* The same with --query: the task is the question, alone or after a record. */
static const char base_question[] = "Question: ", base_answer[] = "\nAnswer:";
static const char chat_query_lead[] =
    "Here is one document that may help with the question below:\n\n{reference}\n\n"
    "The document ends here.\n\n";
static const char chat_question[] =
    "Please answer this question in a few sentences. Do not give names, dates or other "
    "particulars of any one document. Output only the answer.\n\nQuestion: ";

/* ---- Reading -------------------------------------------------------------------------------- */

static char *copy_text(const char *a, size_t n_a, const char *b, size_t n_b, size_t *n) {
    char *text = private_malloc(n_a + n_b + 1);
    if (!text)
        return NULL;
    memcpy(text, a, n_a);
    memcpy(text + n_a, b, n_b);
    text[n_a + n_b] = '\0';
    *n = n_a + n_b;
    return text;
}

/* Static `before`, a text, static `after`. */
static char *wrap_text(const char *before, const char *text, size_t n_bytes, const char *after,
                       size_t *n) {
    char *head = copy_text(before, strlen(before), text, n_bytes, n);
    char *whole = head ? copy_text(head, *n, after, strlen(after), n) : NULL;
    private_free(head);
    return whole;
}

static int load_text(const args *a, option_id inline_id, option_id file_id, const char *name,
                     char **text, size_t *n_bytes) {
    const option_value *direct = &a->v[inline_id], *file = &a->v[file_id];
    if (direct->given && file->given)
        return cli_fail(CLI_USAGE, "--%s and --%s-file: allowed is one of them", name, name);
    if (file->given) {
        if (!cli_read_path(file->s, text, n_bytes))
            return cli_fail(CLI_USAGE, "--%s-file: cannot read %s: %s", name, file->s,
                            strerror(errno));
        *n_bytes = cli_trim_line_end(*text, *n_bytes);
        (*text)[*n_bytes] = '\0';
    } else if (direct->given) {
        *text = copy_text(direct->s, strlen(direct->s), "", 0, n_bytes);
        if (!*text)
            return cli_fail(CLI_FAILED, "out of memory for the prompts");
    }
    return CLI_OK;
}

static int count_placeholders(const char *text, size_t n_bytes) {
    int n = 0;
    for (size_t i = 0; i + PLACEHOLDER_BYTES <= n_bytes; i++)
        n += memcmp(text + i, placeholder, PLACEHOLDER_BYTES) == 0;
    return n;
}

/* The query is the task of both prompts, so that nothing is left for the other options to say. */
static int load_query(const args *a, prompts *p) {
    int code = load_text(a, OPT_QUERY, OPT_QUERY_FILE, "query", &p->query, &p->n_query);
    if (code != CLI_OK || !p->query)
        return code;
    if (p->private_text || p->public_text)
        return cli_fail(CLI_USAGE, "--query and --%s-prompt: allowed is one of them (the query is "
                                   "the public prompt, and comes after the record in the private "
                                   "one)", p->public_text ? "public" : "private");
    if (strspn(p->query, " \t\r\n") == p->n_query)
        return cli_fail(CLI_USAGE, "--query: found no text, allowed is a question");
    if (count_placeholders(p->query, p->n_query) > 0)
        return cli_fail(CLI_USAGE, "--query: found {reference}, which stands before the query "
                                   "without being asked for");
    return CLI_OK;
}

int prompts_load(const args *a, prompts *p) {
    *p = (prompts){0};
    int code = load_text(a, OPT_PRIVATE_PROMPT, OPT_PRIVATE_PROMPT_FILE, "private-prompt",
                         &p->private_text, &p->n_private);
    if (code == CLI_OK)
        code = load_text(a, OPT_PUBLIC_PROMPT, OPT_PUBLIC_PROMPT_FILE, "public-prompt",
                         &p->public_text, &p->n_public);
    if (code == CLI_OK)
        code = load_query(a, p);
    if (code == CLI_OK)
        code = load_text(a, OPT_SYSTEM, OPT_SYSTEM_FILE, "system", &p->system, &p->n_system);
    if (code != CLI_OK)
        return code;
    int n = p->private_text ? count_placeholders(p->private_text, p->n_private) : 1;
    if (n != 1)
        return cli_fail(CLI_USAGE, "--private-prompt: found %d times {reference}, allowed once", n);
    if (p->public_text && count_placeholders(p->public_text, p->n_public) > 0)
        return cli_fail(CLI_USAGE, "--public-prompt: found {reference}, which only "
                                   "--private-prompt may hold");
    return CLI_OK;
}

void prompts_free(prompts *p) {
    private_free(p->private_text);
    private_free(p->public_text);
    private_free(p->query);
    private_free(p->system);
    private_free(p->public_tokens);
    *p = (prompts){0};
}

/* ---- Encoding ------------------------------------------------------------------------------- */

static int encode(const prompts *p, const char *text, size_t n_bytes, int32_t **tokens,
                  size_t *n_tokens) {
    size_t capacity = 4 * (p->n_system + n_bytes) + 256; /* dpinfer.h: always suffices */
    int32_t *ids = private_malloc(capacity * sizeof *ids);
    if (!ids)
        return cli_fail(CLI_FAILED, "out of memory for the prompts");
    dpi_error err;
    if (dpi_prompt_encode(p->model, p->chat, p->system, p->n_system, text, n_bytes, ids, capacity,
                          n_tokens, &err) != DPI_STATUS_OK) {
        private_free(ids);
        return cli_fail_library(CLI_FAILED, &err);
    }
    *tokens = ids;
    return CLI_OK;
}

/* The private prompt with the first n_body bytes of a body. */
static int encode_private(const prompts *p, const char *body, size_t n_body, int32_t **tokens,
                          size_t *n_tokens) {
    size_t after = p->before + PLACEHOLDER_BYTES, n;
    char *head = copy_text(p->private_text, p->before, body, n_body, &n);
    char *whole = head ? copy_text(head, n, p->private_text + after, p->n_private - after, &n)
                       : NULL;
    int code = whole ? encode(p, whole, n, tokens, n_tokens)
                     : cli_fail(CLI_FAILED, "out of memory for the prompts");
    private_free(head);
    private_free(whole);
    return code;
}

/* Largest m <= n that does not split a UTF-8 character of text [n_bytes]. Bytes that are not
 * UTF-8 are characters of their own. */
static size_t whole_characters(const char *text, size_t n_bytes, size_t n) {
    size_t m = n;
    while (m < n_bytes && m > 0 && n - m < 3 && ((unsigned char)text[m] & 0xc0) == 0x80)
        m--;
    return m;
}

int prompts_encode(const prompts *p, const char *body, size_t n_body, int32_t **tokens,
                   size_t *n_tokens) {
    /* `fits` bytes fit, `over` bytes do not; up from a short prefix, so that the work depends on
     * the limit and not on the length of the record. */
    size_t fits = 0, over = n_body + 1, probe = 8 * p->n_limit;
    int32_t *best = NULL;
    size_t n_best = 0;
    while (over - fits > 1) {
        probe = probe < n_body ? probe : n_body;
        size_t m = whole_characters(body, n_body, probe), n = p->n_limit + 1;
        int32_t *ids = NULL;
        if (m > fits) {
            int code = encode_private(p, body, m, &ids, &n);
            if (code != CLI_OK) {
                private_free(best);
                return code;
            }
        }
        if (n <= p->n_limit) {
            private_free(best);
            best = ids;
            n_best = n;
            fits = m;
        } else {
            private_free(ids);
            over = probe;
        }
        probe = over <= n_body ? fits + (over - fits) / 2 : 2 * probe;
    }
    *tokens = best;
    *n_tokens = n_best;
    return CLI_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------ */

static int set_defaults(prompts *p) {
    bool base = p->chat == DPI_CHAT_NONE;
    const char *task = base ? base_task : chat_task, *lead = base ? base_lead : chat_lead;
    if (p->query) {
        lead = base ? base_lead : chat_query_lead;
        p->public_text = wrap_text(base ? base_question : chat_question, p->query, p->n_query,
                                   base ? base_answer : "", &p->n_public);
    } else if (!p->public_text)
        p->public_text = copy_text(task, strlen(task), "", 0, &p->n_public);
    if (p->public_text && !p->private_text)
        p->private_text = copy_text(lead, strlen(lead), p->public_text, p->n_public,
                                    &p->n_private);
    if (!p->public_text || !p->private_text)
        return cli_fail(CLI_FAILED, "out of memory for the prompts");
    /* memmem, because a prompt may hold NUL bytes */
    const char *at = memmem(p->private_text, p->n_private, placeholder, PLACEHOLDER_BYTES);
    p->before = (size_t)(at - p->private_text);
    return CLI_OK;
}

static int encode_public(prompts *p) {
    int code = encode(p, p->public_text, p->n_public, &p->public_tokens, &p->n_public_tokens);
    if (code != CLI_OK || p->n_public_tokens > 0)
        return code;
    /* A model without BOS, an empty prompt: it must have something to continue. */
    private_free(p->public_tokens);
    p->public_tokens = NULL;
    return encode(p, "\n", 1, &p->public_tokens, &p->n_public_tokens);
}

/* n_prefix, from records that begin in different ways: what stands before {reference} may merge
 * with a record. One that begins in yet another way shares less, which dpi_generate sees. */
static int find_prefix(prompts *p) {
    static const char *const records[] = {"The", "a", "1", " x", "\n", "\"", "\xc3\x89"};
    int32_t *first = NULL;
    int code = CLI_OK;
    for (size_t i = 0; i < sizeof records / sizeof *records && code == CLI_OK; i++) {
        int32_t *ids = NULL;
        size_t n_ids, n = 0;
        code = encode_private(p, records[i], strlen(records[i]), &ids, &n_ids);
        if (code == CLI_OK && !first) {
            first = ids;
            p->n_prefix = n_ids;
            continue;
        }
        while (code == CLI_OK && n < n_ids && n < p->n_prefix && ids[n] == first[n])
            n++;
        p->n_prefix = n;
        private_free(ids);
    }
    private_free(first);
    return code;
}

int prompts_prepare(prompts *p, const dpi_model *model, const dpi_model_info *info, int32_t chat,
                    size_t n_room, size_t max_ref_tokens) {
    p->model = model;
    p->chat = chat != DPI_CHAT_AUTO ? chat
              : info->chat_template == DPI_CHAT_UNKNOWN ? DPI_CHAT_NONE
                                                        : info->chat_template;
    int code = set_defaults(p);
    if (code == CLI_OK)
        code = encode_public(p);
    if (code != CLI_OK)
        return code;
    if (p->n_public_tokens > n_room)
        return cli_fail(CLI_USAGE,
                        "the public prompt has %zu tokens, allowed %zu (context less -n)",
                        p->n_public_tokens, n_room);
    int32_t *frame;
    code = encode_private(p, "", 0, &frame, &p->n_frame);
    if (code != CLI_OK)
        return code;
    private_free(frame);
    if (p->n_frame >= n_room)
        return cli_fail(CLI_USAGE,
                        "the private prompt without a record has %zu tokens, allowed less than "
                        "%zu (context less -n)", p->n_frame, n_room);
    code = find_prefix(p);
    if (code != CLI_OK)
        return code;
    p->n_limit = n_room;
    if (max_ref_tokens > 0 && max_ref_tokens < n_room - p->n_frame)
        p->n_limit = p->n_frame + max_ref_tokens;
    return CLI_OK;
}
