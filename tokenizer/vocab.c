/* vocab.c - reads tokenizer.ggml.* from a GGUF file, refuses what contradicts itself. */
#include "tokenizer/vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/chat_formats.h"

/* The tokenizer models. A new one is a row here and its file. */
static const dpi_vocab_kind kinds[] = {
    {.model = "llama", .bos = 1, .eos = 2, .unk = 0, .add_bos = true, .add_space_prefix = true,
     .space_mark = true, .needs_scores = true, .load = dpi_spm_load, .encode = dpi_spm_encode},
    {.model = "gemma4", .bos = 2, .eos = 1, .unk = 3, .add_bos = true, .space_mark = true,
     .load = dpi_spm_load_merges, .encode = dpi_spm_encode},
    {.model = "gpt2", .bos = -1, .eos = -1, .unk = -1, .byte_level = true, .load = dpi_bpe_load,
     .encode = dpi_bpe_encode},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Texts that end a turn or a text in the models of the LLaMA family, whatever the file says of
 * their type. */
static const char *const end_texts[] = {
    "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end|>", "<end_of_turn>", "<eos>", "<turn|>",
    "<｜end▁of▁sentence｜>",
};
enum { N_END_TEXTS = sizeof end_texts / sizeof end_texts[0] };

/* Texts of tokens that make up a turn without looking special: no document may write them. */
static const char *const turn_texts[] = {"[INST]", "[/INST]", "[SYSTEM_PROMPT]",
                                         "[/SYSTEM_PROMPT]", "<start_of_turn>"};
enum { N_TURN_TEXTS = sizeof turn_texts / sizeof turn_texts[0] };

typedef struct loader {
    const dpi_gguf *gguf;
    const char *file; /* for messages */
    dpi_vocab *v;
    dpi_error *err;
} loader;

static dpi_status no_memory(const loader *l) {
    return dpi_fail(l->err, DPI_STATUS_MEMORY, "%s: no memory for the vocabulary", l->file);
}

static bool text_is(const dpi_token *token, const char *text) {
    return token->n_bytes == strlen(text) && memcmp(token->text, text, token->n_bytes) == 0;
}

/* ---- The index ------------------------------------------------------------------------------- */

/* Order of the index. qsort has no context argument: while sorting, entries carry their token. */
typedef struct sort_entry {
    uint64_t hash;
    const dpi_token *token;
    uint32_t bucket;
} sort_entry;

static int compare_entry(const void *x, const void *y) {
    const sort_entry *a = x, *b = y;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return dpi_token_compare(a->token, b->token->text, b->token->n_bytes);
}

/* Fills the index from sorted entries. Two tokens of one text are an error: merging could not
 * tell them apart (llama.cpp refuses them too). */
static dpi_status fill_index(loader *l, const sort_entry *sorted) {
    dpi_vocab *v = l->v;
    for (int32_t i = 0; i < v->n_entries; i++) {
        int32_t id = (int32_t)(sorted[i].token - v->tokens);
        v->entries[i] = (dpi_vocab_entry){sorted[i].hash, id};
        v->buckets[sorted[i].bucket + 1]++;
        if (i > 0 && compare_entry(&sorted[i - 1], &sorted[i]) == 0)
            return dpi_fail(l->err, DPI_STATUS_FORMAT,
                            "%s: tokenizer.ggml.tokens: tokens %d and %d have the same text",
                            l->file, (int)(sorted[i - 1].token - v->tokens), (int)id);
    }
    for (size_t b = 0; b < (size_t)1 << v->bucket_bits; b++)
        v->buckets[b + 1] += v->buckets[b];
    return DPI_STATUS_OK;
}

static dpi_status build_index(loader *l) {
    dpi_vocab *v = l->v;
    size_t n = (size_t)v->n_tokens;
    v->bucket_bits = 1;
    while ((size_t)1 << v->bucket_bits < n)
        v->bucket_bits++;
    v->entries = dpi_calloc(n, sizeof *v->entries);
    v->buckets = dpi_calloc(((size_t)1 << v->bucket_bits) + 1, sizeof *v->buckets);
    sort_entry *sorted = dpi_calloc(n, sizeof *sorted);
    dpi_status status;
    if (!v->entries || !v->buckets || !sorted) {
        status = no_memory(l);
    } else {
        for (size_t i = 0; i < n; i++) {
            const dpi_token *t = &v->tokens[i];
            uint64_t hash = dpi_text_hash(t->text, t->n_bytes);
            if (t->n_bytes > 0)
                sorted[v->n_entries++] = (sort_entry){hash, t, dpi_vocab_bucket(v, hash)};
        }
        qsort(sorted, (size_t)v->n_entries, sizeof *sorted, compare_entry);
        status = fill_index(l, sorted);
    }
    free(sorted);
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------- */

static dpi_status load_kind(loader *l) {
    const char *key = "tokenizer.ggml.model";
    dpi_str model = {0};
    bool found = false;
    DPI_TRY(dpi_gguf_get_string(l->gguf, key, &model, &found, l->err));
    if (!found)
        return dpi_fail(l->err, DPI_STATUS_FORMAT, "%s: %s is missing", l->file, key);
    for (int i = 0; i < N_KINDS; i++)
        if (model.n_bytes == strlen(kinds[i].model) &&
            memcmp(model.data, kinds[i].model, model.n_bytes) == 0)
            l->v->kind = &kinds[i];
    if (l->v->kind) {
        l->v->add_bos = l->v->kind->add_bos;
        return DPI_STATUS_OK;
    }
    char name[32];
    dpi_str_printable(model, name, sizeof name);
    return dpi_fail_at(l->err, DPI_STATUS_UNSUPPORTED, dpi_gguf_find(l->gguf, key)->offset,
                       "%s: %s is \"%s\", which is not supported; must be \"llama\" or "
                       "\"gemma4\" (SPM), or \"gpt2\" (BPE)", l->file, key, name);
}

static dpi_status load_texts(loader *l) {
    const char *key = "tokenizer.ggml.tokens";
    dpi_vocab *v = l->v;
    const dpi_gguf_kv *array = NULL;
    DPI_TRY(dpi_gguf_get_array(l->gguf, key, DPI_GGUF_STRING, &array, l->err));
    if (!array)
        return dpi_fail(l->err, DPI_STATUS_FORMAT, "%s: %s is missing", l->file, key);
    if (array->n_items < 1 || array->n_items > DPI_VOCAB_MAX_TOKENS)
        return dpi_fail_at(l->err, DPI_STATUS_FORMAT, array->offset,
                           "%s: %s has %" PRIu64 " tokens, must be 1..%d", l->file, key,
                           array->n_items, (int)DPI_VOCAB_MAX_TOKENS);
    v->n_tokens = (int32_t)array->n_items;
    v->tokens = dpi_calloc((size_t)v->n_tokens, sizeof *v->tokens);
    v->pool = dpi_calloc((size_t)array->n_bytes, 1); /* lengths and texts: more than enough */
    if (!v->tokens || !v->pool)
        return no_memory(l);
    uint64_t cursor = 0;
    size_t used = 0;
    for (int32_t i = 0; i < v->n_tokens; i++) {
        dpi_str text = dpi_gguf_next_string(array, &cursor);
        if (text.n_bytes > DPI_TOKEN_MAX_BYTES)
            return dpi_fail_at(l->err, DPI_STATUS_FORMAT,
                               array->offset +
                                   (uint64_t)((const unsigned char *)text.data - array->data),
                               "%s: %s: token %d has %" PRIu64 " bytes, at most %d are allowed",
                               l->file, key, (int)i, text.n_bytes, (int)DPI_TOKEN_MAX_BYTES);
        v->tokens[i] = (dpi_token){.text = v->pool + used, .n_bytes = (uint32_t)text.n_bytes,
                                   .type = DPI_TOKEN_NORMAL};
        if (text.n_bytes > 0)
            memcpy(v->pool + used, text.data, (size_t)text.n_bytes);
        used += (size_t)text.n_bytes;
        if (text.n_bytes > v->max_bytes)
            v->max_bytes = (uint32_t)text.n_bytes;
    }
    return DPI_STATUS_OK;
}

/* An array with one item per token; *array = NULL if it is not there. */
static dpi_status find_per_token(loader *l, const char *key, dpi_gguf_type type,
                                 const dpi_gguf_kv **array) {
    *array = NULL;
    DPI_TRY(dpi_gguf_get_array(l->gguf, key, type, array, l->err));
    if (*array && (*array)->n_items != (uint64_t)l->v->n_tokens)
        return dpi_fail_at(l->err, DPI_STATUS_FORMAT, (*array)->offset,
                           "%s: %s has %" PRIu64 " items, must be %d, one per token", l->file, key,
                           (*array)->n_items, (int)l->v->n_tokens);
    return DPI_STATUS_OK;
}

static dpi_status load_scores(loader *l) {
    const char *key = "tokenizer.ggml.scores";
    const dpi_gguf_kv *array;
    DPI_TRY(find_per_token(l, key, DPI_GGUF_F32, &array));
    if (!array) {
        if (l->v->kind->needs_scores)
            return dpi_fail(l->err, DPI_STATUS_FORMAT, "%s: %s is missing", l->file, key);
        return DPI_STATUS_OK;
    }
    for (int32_t i = 0; i < l->v->n_tokens; i++) {
        float score = dpi_gguf_item_f32(array, (uint64_t)i);
        if (!isfinite(score))
            return dpi_fail_at(l->err, DPI_STATUS_FORMAT,
                               array->offset + (uint64_t)i * sizeof score,
                               "%s: %s: the score of token %d is not finite", l->file, key, (int)i);
        l->v->tokens[i].score = score;
    }
    return DPI_STATUS_OK;
}

static int32_t hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of "<0xHH>", -1 if the text is anything else. */
static int32_t byte_of(const dpi_token *token) {
    const char *s = token->text;
    if (token->n_bytes != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return -1;
    int32_t high = hex_digit(s[3]), low = hex_digit(s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static dpi_status load_types(loader *l) {
    const char *key = "tokenizer.ggml.token_type";
    const dpi_gguf_kv *array;
    DPI_TRY(find_per_token(l, key, DPI_GGUF_I32, &array));
    for (int32_t i = 0; i < l->v->n_tokens; i++) {
        dpi_token *t = &l->v->tokens[i];
        int32_t byte = l->v->kind->byte_level && !array ? -1 : byte_of(t);
        if (!array) { /* old files: everything is normal but what looks like a byte */
            t->type = byte >= 0 ? DPI_TOKEN_BYTE : DPI_TOKEN_NORMAL;
            t->byte = byte >= 0 ? (uint8_t)byte : 0;
            continue;
        }
        int32_t type = dpi_gguf_item_i32(array, (uint64_t)i);
        uint64_t offset = array->offset + (uint64_t)i * sizeof type;
        if (type < DPI_TOKEN_UNDEFINED || type > DPI_TOKEN_BYTE)
            return dpi_fail_at(l->err, DPI_STATUS_FORMAT, offset,
                               "%s: %s: the type of token %d is %d, must be 0..6", l->file, key,
                               (int)i, (int)type);
        if (type == DPI_TOKEN_BYTE && byte < 0)
            return dpi_fail_at(l->err, DPI_STATUS_FORMAT, offset,
                               "%s: tokenizer.ggml.tokens: token %d is a byte token but not "
                               "written <0xHH> with upper-case digits", l->file, (int)i);
        t->type = (uint8_t)type;
        t->byte = type == DPI_TOKEN_BYTE ? (uint8_t)byte : 0;
        if (type == DPI_TOKEN_USER_DEFINED && l->v->kind->space_mark) {
            char *text = l->v->pool + (t->text - l->v->pool);
            t->n_bytes = (uint32_t)dpi_unmark_spaces(text, t->n_bytes);
        }
    }
    return DPI_STATUS_OK;
}

/* A special id: `id` if the file does not give one. -1, also as u32, means none. */
static dpi_status load_id(loader *l, const char *key, int32_t fallback, int32_t *id) {
    int64_t value = fallback;
    bool found = false;
    DPI_TRY(dpi_gguf_get_int(l->gguf, key, -1, UINT32_MAX, &value, &found, l->err));
    if (value == UINT32_MAX)
        value = -1;
    if (value >= l->v->n_tokens)
        return dpi_fail_at(l->err, DPI_STATUS_FORMAT,
                           found ? dpi_gguf_find(l->gguf, key)->offset : DPI_NO_OFFSET,
                           "%s: %s is %" PRId64 "%s, but there are %d tokens", l->file, key, value,
                           found ? "" : " by default", (int)l->v->n_tokens);
    *id = (int32_t)value;
    return DPI_STATUS_OK;
}

/* ---- What a token is ----------------------------------------------------------------------- */

/* Whatever the file says of its type, a token with a special role is not plain text. A byte token
 * stays one: text needs it. */
static void mark(dpi_vocab *v, int32_t id, dpi_token_type type, bool is_eog) {
    if (id < 0)
        return;
    dpi_token *t = &v->tokens[id];
    if (t->type != DPI_TOKEN_BYTE && t->type != DPI_TOKEN_CONTROL && t->type != DPI_TOKEN_UNKNOWN)
        t->type = (uint8_t)type;
    t->is_eog = t->is_eog || is_eog;
}

/* <|name|>, in Gemma 4 <|name> and <name|>: converters have given such tokens every type, and a
 * document must not forge one. */
static bool looks_special(const dpi_token *t) {
    if (t->n_bytes < 4 || t->text[0] != '<' || t->text[t->n_bytes - 1] != '>')
        return false;
    const uint32_t begin = t->text[1] == '|' ? 2 : 1;
    const uint32_t end = t->n_bytes - (t->text[t->n_bytes - 2] == '|' ? 2 : 1);
    if (begin >= end || end - begin + 2 == t->n_bytes)
        return false;
    for (uint32_t i = begin; i < end; i++) {
        char c = t->text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return true;
}

static void mark_by_text(dpi_vocab *v) {
    for (int32_t i = 0; i < v->n_tokens; i++) {
        if (looks_special(&v->tokens[i]))
            mark(v, i, DPI_TOKEN_CONTROL, false);
        if (v->tokens[i].type == DPI_TOKEN_CONTROL && text_is(&v->tokens[i], "</s>"))
            mark(v, i, DPI_TOKEN_CONTROL, true);
    }
    for (int i = 0; i < N_TURN_TEXTS; i++)
        mark(v, dpi_vocab_find(v, turn_texts[i], strlen(turn_texts[i])), DPI_TOKEN_CONTROL, false);
    for (int i = 0; i < N_END_TEXTS; i++)
        mark(v, dpi_vocab_find(v, end_texts[i], strlen(end_texts[i])), DPI_TOKEN_CONTROL, true);
}

static dpi_status load_special(loader *l) {
    dpi_vocab *v = l->v;
    static const char *const ends[] = {
        "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
        "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id"};
    int32_t end, unused;
    DPI_TRY(load_id(l, "tokenizer.ggml.bos_token_id", v->kind->bos, &v->bos));
    DPI_TRY(load_id(l, "tokenizer.ggml.eos_token_id", v->kind->eos, &v->eos));
    DPI_TRY(load_id(l, "tokenizer.ggml.unknown_token_id", v->kind->unk, &v->unk));
    DPI_TRY(load_id(l, "tokenizer.ggml.padding_token_id", -1, &unused));
    mark(v, v->bos, DPI_TOKEN_CONTROL, false);
    mark(v, v->eos, DPI_TOKEN_CONTROL, true);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        DPI_TRY(load_id(l, ends[i], -1, &end));
        mark(v, end, DPI_TOKEN_CONTROL, true);
    }
    mark(v, v->unk, DPI_TOKEN_UNKNOWN, false);
    mark_by_text(v);
    return DPI_STATUS_OK;
}

static dpi_status load_flags(loader *l) {
    dpi_vocab *v = l->v;
    bool found = false, add_eos = false, add_space_prefix = v->kind->add_space_prefix;
    bool is_squeezed = false;
    const char *squeeze = "tokenizer.ggml.remove_extra_whitespaces";
    DPI_TRY(dpi_gguf_get_bool(l->gguf, "tokenizer.ggml.add_bos_token", &v->add_bos, &found,
                              l->err));
    /* Checked only: what we encode is continued, so it never ends with EOS. */
    DPI_TRY(dpi_gguf_get_bool(l->gguf, "tokenizer.ggml.add_eos_token", &add_eos, NULL, l->err));
    DPI_TRY(dpi_gguf_get_bool(l->gguf, "tokenizer.ggml.add_space_prefix", &add_space_prefix, NULL,
                              l->err));
    DPI_TRY(dpi_gguf_get_bool(l->gguf, squeeze, &is_squeezed, NULL, l->err));
    if (is_squeezed)
        return dpi_fail_at(l->err, DPI_STATUS_UNSUPPORTED, dpi_gguf_find(l->gguf, squeeze)->offset,
                           "%s: %s is true, only false is supported", l->file, squeeze);
    v->add_space_prefix = add_space_prefix && v->kind->add_space_prefix;
    if (v->bos < 0 && v->add_bos && found)
        return dpi_fail_at(l->err, DPI_STATUS_FORMAT,
                           dpi_gguf_find(l->gguf, "tokenizer.ggml.add_bos_token")->offset,
                           "%s: tokenizer.ggml.add_bos_token is true, but there is no BOS token",
                           l->file);
    v->add_bos = v->add_bos && v->bos >= 0;
    return DPI_STATUS_OK;
}

static int compare_user_defined(const void *x, const void *y) {
    const dpi_token *a = *(const dpi_token *const *)x, *b = *(const dpi_token *const *)y;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    return a < b ? -1 : a > b; /* by id */
}

static dpi_status load_user_defined(loader *l) {
    dpi_vocab *v = l->v;
    size_t n = 0;
    for (int32_t i = 0; i < v->n_tokens; i++)
        n += v->tokens[i].type == DPI_TOKEN_USER_DEFINED && v->tokens[i].n_bytes > 0;
    v->user_defined = dpi_calloc(n, sizeof *v->user_defined);
    const dpi_token **sorted = dpi_calloc(n, sizeof *sorted);
    if (!v->user_defined || !sorted) {
        free(sorted);
        return no_memory(l);
    }
    n = 0;
    for (int32_t i = 0; i < v->n_tokens; i++)
        if (v->tokens[i].type == DPI_TOKEN_USER_DEFINED && v->tokens[i].n_bytes > 0)
            sorted[n++] = &v->tokens[i];
    qsort(sorted, n, sizeof *sorted, compare_user_defined);
    for (size_t i = 0; i < n; i++)
        v->user_defined[i] = (int32_t)(sorted[i] - v->tokens);
    v->n_user_defined = (int32_t)n;
    free(sorted);
    return DPI_STATUS_OK;
}

static dpi_status load_chat(loader *l) {
    dpi_str text = {0};
    DPI_TRY(dpi_gguf_get_string(l->gguf, "tokenizer.chat_template", &text, NULL, l->err));
    l->v->chat = l->v->nearest = DPI_CHAT_NONE;
    if (text.n_bytes > 0)
        l->v->chat = dpi_chat_recognise(text.data, (size_t)text.n_bytes, &l->v->nearest);
    return DPI_STATUS_OK;
}

/* Keys of a tokenizer that are read here or in bpe.c, and those that change no token. */
static const char *const known_keys[] = {
    "chat_template", "ggml.model", "ggml.pre", "ggml.tokens", "ggml.scores", "ggml.token_type",
    "ggml.merges", "ggml.bos_token_id", "ggml.eos_token_id", "ggml.unknown_token_id",
    "ggml.eot_token_id", "ggml.eom_token_id", "ggml.padding_token_id", "ggml.add_bos_token",
    "ggml.add_eos_token", "ggml.add_space_prefix", "ggml.remove_extra_whitespaces",
    "ggml.fim_pad_token_id", "ggml.fim_rep_token_id", "ggml.fim_sep_token_id",
    "chat_templates", "chat_template.*", /* of uses that are not ours */
    "huggingface.json",                  /* the same tokenizer in another form */
    "ggml.added_tokens",                 /* they are among the tokens */
    "ggml.token_type_count",             /* the encoders' segments */
    "ggml.seperator_token_id",           /* the rest: tokens that no text of ours gets */
    "ggml.separator_token_id", "ggml.cls_token_id", "ggml.mask_token_id", "ggml.add_sep_token",
    "ggml.prefix_token_id", "ggml.suffix_token_id", "ggml.middle_token_id",
    "ggml.fim_pre_token_id", "ggml.fim_suf_token_id", "ggml.fim_mid_token_id",
    NULL,
};

static dpi_status load_all(loader *l) {
    DPI_TRY(load_kind(l));
    DPI_TRY(load_texts(l));
    DPI_TRY(load_scores(l));
    DPI_TRY(load_types(l));
    DPI_TRY(build_index(l));
    DPI_TRY(load_special(l));
    DPI_TRY(l->v->kind->load(l->v, l->gguf, l->err));
    DPI_TRY(load_flags(l));
    DPI_TRY(load_user_defined(l));
    DPI_TRY(load_chat(l));
    return dpi_gguf_check_keys(l->gguf, "tokenizer.", known_keys, l->err);
}

dpi_status dpi_vocab_create(const dpi_gguf *gguf, dpi_vocab **vocab, dpi_error *err) {
    loader l = {.gguf = gguf, .file = dpi_gguf_name(gguf), .err = err};
    l.v = dpi_calloc(1, sizeof *l.v);
    if (!l.v)
        return no_memory(&l);
    dpi_status status = load_all(&l);
    if (status != DPI_STATUS_OK) {
        dpi_vocab_free(l.v);
        return status;
    }
    *vocab = l.v;
    return DPI_STATUS_OK;
}

void dpi_vocab_free(dpi_vocab *vocab) {
    if (!vocab)
        return;
    free(vocab->tokens);
    free(vocab->pool);
    free(vocab->entries);
    free(vocab->buckets);
    free(vocab->user_defined);
    dpi_bpe_free(vocab->bpe);
    free(vocab);
}
