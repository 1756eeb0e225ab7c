/* cmd_infer.c - `dpinfer infer`: perturbed documents to a model elsewhere, and out of what it
 * writes, by the local model, what fits the true ones (InferDPT, Tong et al. 2025). */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/extract.h"
#include "tools/command/commands.h"
#include "tools/options/release_options.h"
#include "tools/remote/remote.h"
#include "tools/remote/remote_options.h"
#include "tools/shared/words_report.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

/* A document on its way. PRIVATE but for what is sent. */
typedef struct slot {
    int64_t index;
    char *document;  /* NULL: the record is null, or nothing of it is left */
    char *perturbed; /* the part of the prompt that is sent */
    int place;       /* of its request */
} slot;

typedef struct infer {
    const args *a;
    words_input in;
    dpi_perturber *perturber;
    remote_options options;
    remote *remote;
    dpi_extract *extract;
    int going; /* how requests have gone on between tokens */
    output out;
    char *remote_prompt, *local_prompt;
    slot slots[REMOTE_MOST_IN_FLIGHT]; /* a ring, in the order of documents */
    int first, n;
    dpi_certificate certificate; /* of the report */
    dpi_words_released released;     /* what left */
} infer;

/* ---- Options --------------------------------------------------------------------------------- */

static int read_remote(infer *f) {
    const args *a = f->a;
    remote_options *o = &f->options;
    int code = remote_options_read(a, a->v[OPT_DRY_RUN].i ? REMOTE_MODEL_ALONE : REMOTE_ALL, o);
    o->n_tokens = (int)a->v[OPT_REMOTE_TOKENS].i;
    return code;
}

enum { PROMPT_BYTES_MAX = 1 << 20 };

static bool is_there_once(const char *text, const char *name) {
    const char *first = strstr(text, name);
    return first && !strstr(first + 1, name);
}

/* The text of a file that is a prompt and has each of `names` (between commas) once, or `own`
 * without a file; *text, which the caller frees with dpi_private_free. */
static int read_prompt(const args *a, option_id file, const char *own, const char *names,
                       char **text) {
    char name[32];
    size_t n_bytes;
    dpi_error err;
    if (!a->v[file].given)
        return dpi_extract_fill(own, NULL, NULL, text, &err) == DPI_STATUS_OK
                   ? CLI_OK
                   : cli_fail_library(CLI_FAILED, &err);
    const int code =
        cli_read_text(option_name(file), a->v[file].s, PROMPT_BYTES_MAX, text, &n_bytes);
    if (code != CLI_OK)
        return code;
    (*text)[cli_trim_line_end(*text, n_bytes)] = '\0';
    for (const char *p = names; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
        const size_t n = strcspn(p, ",");
        memcpy(name, p, n);
        name[n] = '\0';
        if (!is_there_once(*text, name))
            return cli_fail(CLI_USAGE, "--%s: the text must have %s, once", option_name(file),
                            name);
    }
    return CLI_OK;
}

static int read_options(infer *f) {
    const args *a = f->a;
    if (a->v[OPT_DRY_RUN].i && a->n_reports > 0)
        return cli_fail(CLI_USAGE, "--report and --dry-run: allowed is one of them, as a report "
                                   "says what left, and in a dry run nothing does");
    int code = words_options(a, WORDS_MODEL, &f->in);
    if (code == CLI_OK)
        code = read_remote(f);
    if (code == CLI_OK)
        code = read_prompt(a, OPT_REMOTE_PROMPT, dpi_extract_prompt_remote(), "{document}",
                           &f->remote_prompt);
    if (code == CLI_OK)
        code = read_prompt(a, OPT_EXTRACT_PROMPT, dpi_extract_prompt_local(),
                           "{document},{generation}", &f->local_prompt);
    return code == CLI_OK ? output_probe(a->v[OPT_OUTPUT].s) : code;
}

/* ---- What is written ------------------------------------------------------------------------- */

static json_t *string_or_null(const char *text) { return text ? words_string(text) : json_null(); }

/* NULL: there was no memory for it. A server's words cannot steer a terminal. */
static int write_line(infer *f, const char *line) {
    const int code = line ? output_show(&f->out, line, strlen(line)) : cli_no_memory("a document");
    return code == CLI_OK ? output_write(&f->out, "\n", 1) : code;
}

static int write_text(infer *f, const slot *s, const char *generation, const char *text) {
    if (s->index < 0 && !f->a->v[OPT_JSON].i)
        return write_line(f, text ? text : "");
    json_t *object = json_object();
    bool ok = s->index < 0 || json_object_set_new(object, "index", json_integer(s->index)) == 0;
    ok = ok && json_object_set_new(object, "text", string_or_null(text)) == 0;
    if (f->a->v[OPT_JSON].i)
        ok = ok && json_object_set_new(object, "perturbed", string_or_null(s->perturbed)) == 0 &&
             json_object_set_new(object, "remote", string_or_null(generation)) == 0;
    char *line = ok ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    const int code = write_line(f, line);
    dpi_private_free(line);
    return code;
}

/* ---- One document ---------------------------------------------------------------------------- */

/* Between tokens of the local model: requests go on. */
static int32_t keep_going(void *user) {
    infer *f = user;
    f->going = signals_stop() ? signals_code() : remote_advance(f->remote);
    return f->going != CLI_OK;
}

static int extract_one(infer *f, const slot *s, const char *generation) {
    char *text = NULL, *prompt = NULL;
    dpi_error err;
    dpi_status status = dpi_extract_fill(f->local_prompt, s->document, generation, &prompt, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_extract_write(f->extract, prompt, keep_going, f, &text, &err);
    int code = status == DPI_STATUS_OK    ? CLI_OK
               : f->going != CLI_OK       ? f->going
                                          : cli_fail_library(CLI_FAILED, &err);
    if (code == CLI_OK && !text)
        cli_note("note: a document with its continuation does not fit the context: its text is "
                 "null");
    if (code == CLI_OK)
        code = write_text(f, s, generation, text);
    dpi_private_free(text);
    dpi_private_free(prompt);
    return code;
}

static void free_slot(slot *s) {
    dpi_private_free(s->document);
    dpi_private_free(s->perturbed);
    *s = (slot){0};
}

/* The document that came first, to its end. */
static int finish_first(infer *f) {
    slot *s = &f->slots[f->first];
    char *generation = NULL;
    int code = CLI_OK;
    if (s->document)
        code = remote_answer_of(f->remote, s->place, &generation);
    if (code == CLI_OK)
        code = generation ? extract_one(f, s, generation) : write_text(f, s, NULL, NULL);
    dpi_private_free(generation);
    free_slot(s);
    f->first = (f->first + 1) % f->options.n_in_flight;
    f->n--;
    return code;
}

/* The prompt that leaves, and nothing else does. */
static int send_one(infer *f, slot *s) {
    char *prompt;
    int code = CLI_OK;
    dpi_error err;
    if (dpi_extract_fill(f->remote_prompt, s->perturbed, NULL, &prompt, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (f->a->v[OPT_DRY_RUN].i) {
        char *body = remote_body(&f->options, prompt);
        code = write_line(f, body);
        dpi_private_free(body);
    } else {
        code = remote_send(f->remote, prompt, &s->place);
    }
    dpi_private_free(prompt);
    return code;
}

static int perturb_one(infer *f, slot *s, const char *text, size_t n_bytes) {
    const dpi_perturbed_word *words;
    size_t n;
    dpi_error err;
    const int32_t most = (int32_t)f->a->v[OPT_DOCUMENT_TOKENS].i;
    if (dpi_extract_cut(f->in.model, text, n_bytes, most, &s->document, &err) != DPI_STATUS_OK ||
        dpi_perturb(f->perturber, s->document, strlen(s->document), &words, &n, &err) !=
        DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const char *perturbed = dpi_perturbed_text(f->perturber);
    if (perturbed[0] == '\0') { /* nothing is left of it to send */
        dpi_private_free(s->document);
        s->document = NULL;
        return CLI_OK;
    }
    if (!(s->perturbed = dpi_private_malloc(strlen(perturbed) + 1)))
        return cli_no_memory("a document");
    strcpy(s->perturbed, perturbed);
    if (f->released.n_documents == 0 && !f->a->v[OPT_DRY_RUN].i)
        signals_catch(); /* the statement is owed from here on */
    dpi_words_count(&f->released, words, n); /* it may leave, whatever becomes of the request */
    return send_one(f, s);
}

static int add_document(void *user, int64_t index, const char *text, size_t n_bytes) {
    infer *f = user;
    int code = f->n == f->options.n_in_flight ? finish_first(f) : CLI_OK;
    if (code != CLI_OK)
        return code;
    slot *s = &f->slots[(f->first + f->n) % f->options.n_in_flight];
    s->index = index;
    if (text)
        code = perturb_one(f, s, text, n_bytes);
    if (f->a->v[OPT_DRY_RUN].i || code != CLI_OK) {
        free_slot(s);
        return code;
    }
    f->n++;
    return remote_advance(f->remote);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int open_extract(infer *f) {
    const args *a = f->a;
    dpi_extract_options o;
    dpi_error err;
    dpi_extract_options_init(&o);
    o.model = f->in.model;
    o.n_tokens = (int32_t)a->v[OPT_INFER_TOKENS].i;
    o.tau = a->v[OPT_INFER_TEMP].given ? a->v[OPT_INFER_TEMP].d : 0;
    const int code = read_session_options(a, &o.session);
    o.session.n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_extract_open(&o, &f->extract, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

static int open_all(infer *f) {
    dpi_error err;
    int code = words_open(&f->in);
    if (code == CLI_OK && dpi_perturber_create(f->in.vocabulary, &f->in.options, &f->perturber,
                                               &err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_USAGE, &err);
    if (code == CLI_OK) /* now: once words have left nothing may keep a report from being written */
        code = words_report_certify(&f->in, f->perturber, &f->certificate);
    if (code == CLI_OK && !f->a->v[OPT_DRY_RUN].i)
        code = open_extract(f);
    if (code == CLI_OK && !f->a->v[OPT_DRY_RUN].i)
        code = remote_open(&f->options, &f->remote);
    if (code == CLI_OK)
        code = output_open(&f->out, f->a->v[OPT_OUTPUT].s, f->a->v[OPT_OVERWRITE].i);
    return code;
}

/* To stderr, whatever was written. */
static int write_statement(const infer *f) {
    const dpi_perturb_options *o = &f->in.options;
    const bool dry = f->a->v[OPT_DRY_RUN].i;
    const bool ok =
        fprintf(stderr,
                "\n%s: perturbed words of %" PRId64 " documents, %" PRId64 " words\n"
                "  mechanism    %s, epsilon %g for a word, as its paper counts\n"
                "  true epsilon %s\n"
                "  a document   of L words has L times the epsilon of a word\n"
                "  this output  %s\n",
                dry ? "NOTHING LEFT. It would have been" : "WHAT LEFT THIS MACHINE",
                f->released.n_documents, f->released.n_words,
                dpi_words_mechanism_name(o->mechanism), o->epsilon,
                words_truth(o, f->in.vocabulary),
                dry ? "is what one run would send; the next run draws other words"
                    : "is as private as the documents: nothing protects it") >= 0 &&
        fflush(stderr) == 0;
    return ok ? CLI_OK : CLI_FAILED;
}

/* Also after a failure: what left has left. */
static int tell_released(infer *f) {
    const int code = words_report_write(&f->in, &f->certificate, &f->released);
    const int said = write_statement(f);
    return code == CLI_OK ? said : code;
}

static void close_all(infer *f) {
    for (int i = 0; i < REMOTE_MOST_IN_FLIGHT; i++)
        free_slot(&f->slots[i]);
    remote_close(f->remote);
    dpi_extract_free(f->extract);
    dpi_perturber_free(f->perturber);
    dpi_private_free(f->remote_prompt);
    dpi_private_free(f->local_prompt);
    dpi_private_free(f->options.key);
    words_close(&f->in);
}

static int infer_main(const args *a) {
    infer f = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* until something leaves */
    int code = read_options(&f);
    if (code == CLI_OK)
        code = open_all(&f);
    if (code == CLI_OK)
        code = words_each(&f.in, add_document, &f);
    while (code == CLI_OK && f.n > 0)
        code = finish_first(&f);
    code = output_finish(&f.out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_PARTIAL, code);
    const int told = code == CLI_OK || f.released.n_documents > 0 ? tell_released(&f) : CLI_OK;
    close_all(&f);
    return code == CLI_OK ? told : code;
}

const command command_infer = {
    .name = "infer",
    .bit = CMD_INFER,
    .arguments = "MODEL [DOCS]",
    .max_positional = 3,
    .run = infer_main,
    .summary = "continuations by a model elsewhere, which sees perturbed words",
    .details =
        "Replaces the words of each document as 'dpinfer perturb' does, has the model NAME at URL\n"
        "continue what comes out (POST /v1/chat/completions), and lets MODEL, on this machine,\n"
        "write out of that what fits the true document. Only the perturbed prompt leaves. DOCS is\n"
        "as for perturb. Output is as private as the documents. A key is read from a variable or\n"
        "a file and is never shown. Certificates are verified, redirects are not followed;\n"
        "http:// is for this machine alone. Answers 429 and 5xx, and failures of the network, are\n"
        "tried again. docs/inferdpt.md says when this protects.\n",
};
