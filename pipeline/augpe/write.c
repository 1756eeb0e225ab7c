/* write.c - candidates, written by the local model many at a time, or elsewhere. All of it is
 * public: prompts are the public ones, or made of earlier candidates. */
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/prompt_texts.h"
#include "dpinfer/registry.h"
#include "pipeline/augpe/augpe.h"

static const char PLACEHOLDER[] = "{reference}";
static const char BLANKS[] =
    "Here is a text in which words are missing, each one where an underscore stands:\n\n"
    "{reference}\n\nThe text ends here.\n\n"
    "Please write the whole text with words that fit in the place of the underscores. Output only "
    "the text.";

static dpi_bytes bytes_of(const char *string) { return (dpi_bytes){string, strlen(string)}; }

/* ---- Opening --------------------------------------------------------------------------------- */

static dpi_status make_prompts(dpi_augpe *f, dpi_error *err) {
    const dpi_augpe_options *o = &f->options;
    const int32_t n_room = o->session.n_ctx - o->n_tokens;
    dpi_prompt_options v = o->prompts;
    DPI_TRY(dpi_prompts_create(o->model, &o->prompts, n_room, &f->prompts, err));
    if (o->variation == DPI_AUGPE_CONTINUE || o->write)
        return DPI_STATUS_OK;
    v.max_reference_tokens = 0;
    if (o->variation == DPI_AUGPE_BLANKS)
        v.private_prompt = bytes_of(BLANKS);
    if (o->variation_prompt.data)
        v.private_prompt = o->variation_prompt;
    if (v.private_prompt.data && v.description.data) /* which would make both */
        v.description = (dpi_bytes){0}, v.public_prompt = bytes_of(" ");
    return dpi_prompts_create(o->model, &v, n_room, &f->variation, err);
}

static dpi_status make_samplers(dpi_augpe *f, dpi_error *err) {
    dpi_sampler_options o;
    dpi_model_info info;
    dpi_sampler_options_init(&o);
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(f->options.model, &info, err));
    DPI_TRY(dpi_method_defaults(DPI_METHOD_PLAIN, &o, err));
    o.n_vocab = info.n_vocab, o.n_tokens = f->options.n_tokens;
    o.top_k = f->options.top_k < info.n_vocab ? f->options.top_k : 0;
    o.tau = f->options.tau;
    o.random = dpi_random_insecure; /* public texts; the noise has bits of its own */
    for (int32_t i = 0; i < f->writer.n_slots; i++) {
        o.random_user = &f->writer.slots[i].bits;
        DPI_TRY(dpi_sampler_create(&o, &f->writer.slots[i].sampler, err));
    }
    return DPI_STATUS_OK;
}

/* The public prompt is read once; texts go on from copies of its cache. */
dpi_status dpi_writer_open(dpi_augpe *f, dpi_error *err) {
    dpi_writer *w = &f->writer;
    dpi_prompts_info info;
    w->n_slots = f->options.n_parallel < f->n_all ? f->options.n_parallel : f->n_all;
    DPI_TRY(make_prompts(f, err));
    if (f->options.write)
        return DPI_STATUS_OK;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(f->prompts, &info, err));
    DPI_TRY(make_samplers(f, err));
    if (f->options.grammar) {
        DPI_TRY(dpi_mask_create(f->options.grammar, f->options.model, &w->mask, err));
        DPI_TRY(dpi_mask_check_length(w->mask, f->options.n_tokens, err));
    }
    dpi_session_options o = f->options.session;
    o.n_seq = w->n_slots + 1;
    DPI_TRY(dpi_session_create(f->options.model, &o, &w->session, err));
    return dpi_session_prefill(w->session, w->n_slots, dpi_prompts_public(f->prompts),
                               (size_t)info.n_public, NULL, err);
}

static void end_text(dpi_writer_slot *s) {
    dpi_generation_free(s->generation);
    dpi_private_free(s->tokens);
    s->generation = NULL;
    s->tokens = NULL;
    s->n_begun = 0;
}

void dpi_writer_close(dpi_augpe *f) {
    for (int32_t i = 0; i < DPI_WRITER_SLOTS_MAX; i++) {
        end_text(&f->writer.slots[i]);
        dpi_sampler_free(f->writer.slots[i].sampler);
    }
    dpi_session_free(f->writer.session);
    dpi_mask_free(f->writer.mask);
    dpi_word_rules_free(f->writer.rules);
    dpi_prompts_free(f->prompts);
    dpi_prompts_free(f->variation);
}

void dpi_writer_begin(dpi_augpe *f, int32_t n) {
    f->writer.n = n;
    f->writer.n_begun = f->writer.n_done = 0;
}

/* ---- Prompts --------------------------------------------------------------------------------- */

/* The text with a part of its words, drawn by chance, as underscores. */
static dpi_text put_blanks(dpi_augpe *f, const dpi_text *from) {
    dpi_text blank = {0};
    for (size_t i = 0, end; i < from->n_bytes; i = end) {
        const bool space = dpi_is_space(from->data[i]);
        for (end = i; end < from->n_bytes && !dpi_is_space(from->data[end]) == !space;)
            end++;
        if (!space && dpi_augpe_uniform(f) < f->options.change)
            dpi_text_put(&blank, "_", 1);
        else
            dpi_text_put(&blank, from->data + i, end - i);
    }
    return blank;
}

/* Where the part of a text ends that stays: at the end of a word, a share of 0 to twice `change`
 * before its end. */
static size_t find_end(dpi_augpe *f, const dpi_text *from) {
    const double share = 2 * f->options.change * dpi_augpe_uniform(f);
    size_t end = share < 1 ? (size_t)((1 - share) * (double)from->n_bytes) : 0;
    while (end > 0 && !dpi_is_space(from->data[end]))
        end--;
    return end;
}

/* The tokens of a text behind the answer, as a part of both where the answer keeps its own: a text
 * that begins anew may have a space more. *tokens [*n] has room for both. */
static dpi_status tokenize_behind(dpi_augpe *f, dpi_bytes text, int32_t *tokens, size_t room,
                                  size_t *n, dpi_error *err) {
    const dpi_bytes answer = f->options.prompts.answer;
    dpi_prompts_info info;
    dpi_text both = {0};
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(f->prompts, &info, err));
    const size_t n_answer = (size_t)info.n_answer;
    const int32_t *own = dpi_prompts_public(f->prompts) + info.n_public - info.n_answer;
    if (answer.data)
        dpi_text_put(&both, answer.data, answer.n_bytes);
    dpi_text_put(&both, text.data, text.n_bytes);
    dpi_status status = both.failed ? dpi_no_memory(err, "candidates")
                                    : dpi_tokenize(f->options.model, both.data, both.n_bytes, 0,
                                                   tokens, room, n, err);
    free(both.data);
    if (status != DPI_STATUS_OK)
        return status;
    if (*n < n_answer || memcmp(tokens, own, n_answer * sizeof *own) != 0)
        return dpi_tokenize(f->options.model, text.data, text.n_bytes, 0, tokens, room, n, err);
    *n -= n_answer;
    memmove(tokens, tokens + n_answer, *n * sizeof *tokens);
    return DPI_STATUS_OK;
}

/* The tokens of the part of `from` that stays: *tokens [*n], private memory of the caller's. */
static dpi_status keep_beginning(dpi_augpe *f, const dpi_text *from, int32_t **tokens, size_t *n,
                                 dpi_error *err) {
    const dpi_bytes kept = {from->data, find_end(f, from)};
    const size_t room = 4 * (kept.n_bytes + f->options.prompts.answer.n_bytes) + 5;
    *n = 0;
    *tokens = dpi_private_malloc(room * sizeof **tokens);
    if (!*tokens)
        return dpi_no_memory(err, "candidates");
    return kept.n_bytes > 0 ? tokenize_behind(f, kept, *tokens, room, n, err) : DPI_STATUS_OK;
}

/* s->tokens [*n_tokens], the prompt of a text that begins with begun [n]: behind the public prompt.
 */
static dpi_status put_behind(dpi_augpe *f, const int32_t *begun, size_t n, dpi_writer_slot *s,
                             size_t *n_tokens, dpi_error *err) {
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(f->prompts, &info, err));
    const size_t n_public = (size_t)info.n_public;
    s->tokens = dpi_private_malloc((n_public + n) * sizeof *s->tokens);
    if (!s->tokens)
        return dpi_no_memory(err, "candidates");
    memcpy(s->tokens, dpi_prompts_public(f->prompts), n_public * sizeof *s->tokens);
    memcpy(s->tokens + n_public, begun, n * sizeof *begun);
    s->n_begun = (int32_t)n;
    s->most = f->options.n_tokens - s->n_begun;
    *n_tokens = n_public + n;
    return DPI_STATUS_OK;
}

/* Whether texts of the grammar begin so: a text that was cut inside of a character does not. */
static dpi_status check_beginning(dpi_augpe *f, const int32_t *tokens, size_t n, bool *fits,
                                  dpi_error *err) {
    dpi_mask_text *text = NULL;
    if (!f->writer.mask)
        return DPI_STATUS_OK;
    const dpi_status status =
        dpi_mask_text_create_begun(f->writer.mask, tokens, n, &text, err);
    dpi_mask_text_free(text);
    *fits = status == DPI_STATUS_OK;
    return status == DPI_STATUS_ARG ? DPI_STATUS_OK : status;
}

/* A text that begins as `from` does. */
static dpi_status continue_text(dpi_augpe *f, const dpi_text *from, dpi_writer_slot *s,
                                size_t *n_tokens, dpi_error *err) {
    int32_t *begun = NULL;
    size_t n;
    dpi_status status = keep_beginning(f, from, &begun, &n, err);
    /* Nothing stays, or nothing is left to write. */
    bool goes_on = status == DPI_STATUS_OK && n > 0 && n < (size_t)f->options.n_tokens;
    if (goes_on)
        status = check_beginning(f, begun, n, &goes_on, err);
    if (status == DPI_STATUS_OK && goes_on)
        status = put_behind(f, begun, n, s, n_tokens, err);
    dpi_private_free(begun);
    return status;
}

/* s->tokens [*n_tokens]: the prompt of a variation; NULL: the public prompt. */
static dpi_status make_prompt(dpi_augpe *f, const dpi_text *from, dpi_writer_slot *s,
                              size_t *n_tokens, dpi_error *err) {
    s->most = f->options.n_tokens;
    if (!from || from->n_bytes == 0)
        return DPI_STATUS_OK;
    if (f->options.variation == DPI_AUGPE_CONTINUE)
        return continue_text(f, from, s, n_tokens, err);
    if (f->options.variation == DPI_AUGPE_ANOTHER)
        return dpi_prompts_encode(f->variation, from->data, from->n_bytes, &s->tokens, n_tokens,
                                  err);
    dpi_text blank = put_blanks(f, from);
    const dpi_status status = blank.failed
                                  ? dpi_no_memory(err, "candidates")
                                  : dpi_prompts_encode(f->variation, blank.data, blank.n_bytes,
                                                       &s->tokens, n_tokens, err);
    free(blank.data);
    return status;
}

/* ---- The local model ------------------------------------------------------------------------- */

static dpi_status begin_text(dpi_augpe *f, int32_t seq, dpi_error *err) {
    dpi_writer *w = &f->writer;
    dpi_writer_slot *s = &w->slots[seq];
    const dpi_text *from;
    dpi_generation_options o;
    dpi_prompts_info info;
    size_t n_tokens = 0;
    dpi_augpe_job(f, w->n_begun, &from, &s->to);
    w->n_begun++;
    dpi_augpe_empty(s->to);
    DPI_TRY(make_prompt(f, from, s, &n_tokens, err));
    s->bits = dpi_augpe_public_bits(f);
    s->prompt_seq = w->n_slots;
    dpi_prompts_info_init(&info); /* the answer ends each of its prompts */
    DPI_TRY(dpi_prompts_info_get(s->tokens && s->n_begun == 0 ? f->variation : f->prompts, &info,
                                 err));
    dpi_generation_options_init(&o);
    o.session = w->session, o.sampler = s->sampler, o.first_seq = seq;
    o.public_tokens = s->tokens ? s->tokens : dpi_prompts_public(f->prompts);
    o.n_public = s->tokens ? n_tokens : (size_t)info.n_public;
    o.prompt_seqs = s->tokens ? NULL : &s->prompt_seq;
    o.mask = w->mask;
    o.rules = w->rules, o.n_answer = info.n_answer, o.text = DPI_TEXT_PIECES;
    o.n_begun = s->n_begun;
    return dpi_generation_create(&o, &s->generation, err);
}

/* A text that has as many tokens as it may have is ended. */
static dpi_status add_token(dpi_writer *w, dpi_writer_slot *s, const dpi_generation_event *e,
                            dpi_error *err) {
    dpi_text_put(s->to, e->text, e->n_bytes);
    if (e->type == DPI_EVENT_TOKEN && e->n_drawn >= s->most)
        dpi_generation_cancel(s->generation);
    if (e->type == DPI_EVENT_END) {
        end_text(s);
        w->n_done++;
    }
    return s->to->failed ? dpi_no_memory(err, "candidates") : DPI_STATUS_OK;
}

static dpi_status write_here(dpi_augpe *f, dpi_error *err) {
    dpi_writer *w = &f->writer;
    dpi_generation *live[DPI_WRITER_SLOTS_MAX];
    dpi_generation_event events[DPI_WRITER_SLOTS_MAX];
    for (int32_t i = 0; i < w->n_slots; i++) {
        if (!w->slots[i].generation && w->n_begun < w->n)
            DPI_TRY(begin_text(f, i, err));
        live[i] = w->slots[i].generation;
    }
    DPI_TRY(dpi_generation_advance(live, w->n_slots, events, err));
    for (int32_t i = 0; i < w->n_slots; i++)
        if (live[i])
            DPI_TRY(add_token(w, &w->slots[i], &events[i], err));
    return DPI_STATUS_OK;
}

/* ---- Elsewhere ------------------------------------------------------------------------------- */

/* The task without a text, as a message. */
static void put_task(const dpi_augpe_options *o, dpi_text *prompt) {
    const dpi_prompt_options *p = &o->prompts;
    if (p->public_prompt.data) {
        dpi_text_put(prompt, p->public_prompt.data, p->public_prompt.n_bytes);
    } else if (p->description.data) {
        dpi_text_add(prompt, "%s", DPI_DESCRIBED_BEFORE);
        dpi_text_put(prompt, p->description.data, p->description.n_bytes);
        dpi_text_add(prompt, "%s", DPI_DESCRIBED_AFTER);
    } else {
        dpi_text_add(prompt, "%s", DPI_CHAT_TASK);
    }
}

/* `template` with the text in the place of {reference}. */
static void fill(dpi_bytes template, const dpi_text *text, dpi_text *prompt) {
    const size_t n = sizeof PLACEHOLDER - 1;
    const char *at = memmem(template.data, template.n_bytes, PLACEHOLDER, n);
    if (!at) {
        dpi_text_put(prompt, template.data, template.n_bytes);
        return;
    }
    const size_t before = (size_t)(at - template.data);
    dpi_text_put(prompt, template.data, before);
    dpi_text_put(prompt, text->data ? text->data : "", text->n_bytes);
    dpi_text_put(prompt, at + n, template.n_bytes - before - n);
}

static dpi_text message_of(dpi_augpe *f, const dpi_text *from) {
    const dpi_augpe_options *o = &f->options;
    dpi_text prompt = {0}, blank = {0};
    if (!from || from->n_bytes == 0) {
        put_task(o, &prompt);
        return prompt;
    }
    if (o->variation == DPI_AUGPE_BLANKS)
        blank = put_blanks(f, from);
    const dpi_text *text = blank.data ? &blank : from;
    if (o->variation_prompt.data) {
        fill(o->variation_prompt, text, &prompt);
    } else if (o->variation == DPI_AUGPE_BLANKS) {
        fill(bytes_of(BLANKS), text, &prompt);
    } else {
        fill(bytes_of(DPI_CHAT_BEFORE "{reference}" DPI_CHAT_AFTER), text, &prompt);
        put_task(o, &prompt);
    }
    prompt.failed |= blank.failed;
    free(blank.data);
    return prompt;
}

/* As many as are written at a time. */
static dpi_status write_elsewhere(dpi_augpe *f, dpi_error *err) {
    dpi_writer *w = &f->writer;
    dpi_text message[DPI_WRITER_SLOTS_MAX], *to[DPI_WRITER_SLOTS_MAX];
    dpi_bytes prompts[DPI_WRITER_SLOTS_MAX];
    char *texts[DPI_WRITER_SLOTS_MAX] = {0};
    dpi_status status = DPI_STATUS_OK;
    int32_t n = 0;
    for (; n < w->n_slots && w->n_begun < w->n; n++) {
        const dpi_text *from;
        dpi_augpe_job(f, w->n_begun++, &from, &to[n]);
        message[n] = message_of(f, from);
        prompts[n] = (dpi_bytes){message[n].data ? message[n].data : "", message[n].n_bytes};
        if (message[n].failed)
            status = dpi_no_memory(err, "candidates");
    }
    if (status == DPI_STATUS_OK)
        status = f->options.write(f->options.write_user, prompts, n, texts, err);
    for (int32_t i = 0; i < n; i++) {
        dpi_augpe_empty(to[i]);
        dpi_text_put(to[i], texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0);
        if (to[i]->failed && status == DPI_STATUS_OK)
            status = dpi_no_memory(err, "candidates");
        free(message[i].data), free(texts[i]);
    }
    w->n_done += n;
    return status;
}

dpi_status dpi_writer_advance(dpi_augpe *f, dpi_error *err) {
    return f->options.write ? write_elsewhere(f, err) : write_here(f, err);
}
