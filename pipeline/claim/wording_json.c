/* wording_json.c - see wording_json.h. What is read comes from anywhere. */
#include "pipeline/claim/wording_json.h"

#include <stdlib.h>

#include "base/status.h"
#include "pipeline/claim/claim_json.h"
#include "pipeline/journal/json_text.h"

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *text_json(dpi_bytes text) {
    return text.data ? json_stringn(text.data, text.n_bytes) : json_null();
}

static json_t *texts_json(const dpi_bytes *texts, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++)
        if (json_array_append_new(list, text_json(texts[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *biases_json(const dpi_wording *w) {
    json_t *list = json_array();
    for (int32_t i = 0; i < w->n_biases; i++)
        if (json_array_append_new(list, json_pack("{s:i, s:f}", "token", w->biases[i].token, "bias",
                                                  w->biases[i].bias)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *dpi_wording_json(const dpi_wording *w) {
    if (dpi_wording_is_default(w))
        return json_null();
    return json_pack("{s:o, s:b, s:b, s:o, s:i, s:i, s:o, s:b, s:i, s:f, s:o}", "answer",
                     text_json(w->answer), "keep_answer", w->keep_answer, "keep_space",
                     w->keep_space, "stops", texts_json(w->stops, w->n_stops), "min_words",
                     w->min_words, "max_words", w->max_words, "bans",
                     texts_json(w->bans, w->n_bans), "ban_refusals", w->ban_refusals, "no_repeat",
                     w->no_repeat, "repeat_penalty", w->repeat_penalty, "biases", biases_json(w));
}

dpi_status dpi_wording_digest(const dpi_wording *wording, char hex[DPI_DIGEST_HEX + 1],
                              dpi_error *err) {
    json_t *object = dpi_wording_json(wording);
    const dpi_status status = dpi_json_digest(object, hex, err);
    json_decref(object);
    return status;
}

dpi_status dpi_claim_bind_wording(dpi_claim *claim, const dpi_wording *wording, dpi_error *err) {
    DPI_TRY(dpi_wording_check(wording, err));
    return dpi_wording_digest(wording, claim->wording, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum { N_KEYS = 11 };

/* A wording that is read: its texts are those of the JSON. */
typedef struct reading {
    dpi_wording w;
    dpi_bytes stops[DPI_STOPS_MAX], bans[DPI_BANS_MAX];
    dpi_token_bias biases[DPI_BIASES_MAX];
} reading;

static dpi_status refuse(const char *key, const char *allowed, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "wording.%s is missing, or not %s", key, allowed);
}

static dpi_status read_flag(const json_t *o, const char *key, int32_t *flag, dpi_error *err) {
    const json_t *found = json_object_get(o, key);
    *flag = json_is_true(found);
    return json_is_boolean(found) ? DPI_STATUS_OK : refuse(key, "true or false", err);
}

static dpi_status read_int(const json_t *o, const char *key, int32_t *value, dpi_error *err) {
    const json_t *found = json_object_get(o, key);
    const json_int_t n = json_integer_value(found);
    *value = (int32_t)n;
    return json_is_integer(found) && n >= 0 && n <= INT32_MAX ? DPI_STATUS_OK
                                                              : refuse(key, "an integer", err);
}

static dpi_status read_real(const json_t *o, const char *key, double *value, dpi_error *err) {
    const json_t *found = json_object_get(o, key);
    *value = json_real_value(found);
    return json_is_real(found) ? DPI_STATUS_OK : refuse(key, "a number with a point", err);
}

static dpi_bytes text_of(const json_t *string) {
    return (dpi_bytes){json_string_value(string), json_string_length(string)};
}

static dpi_status read_texts(const json_t *o, const char *key, int32_t most, dpi_bytes *texts,
                             int32_t *n, dpi_error *err) {
    const json_t *list = json_object_get(o, key), *text;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > (size_t)most)
        return refuse(key, "a list of texts, of a length that is allowed", err);
    json_array_foreach(list, i, text) {
        if (!json_is_string(text))
            return refuse(key, "a list of texts", err);
        texts[i] = text_of(text);
    }
    *n = (int32_t)json_array_size(list);
    return DPI_STATUS_OK;
}

static dpi_status read_biases(const json_t *o, reading *r, dpi_error *err) {
    const json_t *list = json_object_get(o, "biases"), *bias;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > DPI_BIASES_MAX)
        return refuse("biases", "a list of a length that is allowed", err);
    json_array_foreach(list, i, bias) {
        if (json_object_size(bias) != 2)
            return refuse("biases", "a list of tokens and their biases", err);
        DPI_TRY(read_int(bias, "token", &r->biases[i].token, err));
        DPI_TRY(read_real(bias, "bias", &r->biases[i].bias, err));
    }
    r->w.n_biases = (int32_t)json_array_size(list);
    return DPI_STATUS_OK;
}

/* Each key is there and no other one is. */
static dpi_status read_all(const json_t *o, reading *r, dpi_error *err) {
    const json_t *answer = json_object_get(o, "answer");
    dpi_wording *w = &r->w;
    if (json_object_size(o) != N_KEYS)
        return dpi_fail(err, DPI_STATUS_FORMAT, "wording has %zu keys, must have %d",
                        json_object_size(o), N_KEYS);
    if (json_is_string(answer))
        w->answer = text_of(answer);
    else if (!json_is_null(answer))
        return refuse("answer", "a text or null", err);
    DPI_TRY(read_flag(o, "keep_answer", &w->keep_answer, err));
    DPI_TRY(read_flag(o, "keep_space", &w->keep_space, err));
    DPI_TRY(read_texts(o, "stops", DPI_STOPS_MAX, r->stops, &w->n_stops, err));
    DPI_TRY(read_int(o, "min_words", &w->min_words, err));
    DPI_TRY(read_int(o, "max_words", &w->max_words, err));
    DPI_TRY(read_texts(o, "bans", DPI_BANS_MAX, r->bans, &w->n_bans, err));
    DPI_TRY(read_flag(o, "ban_refusals", &w->ban_refusals, err));
    DPI_TRY(read_int(o, "no_repeat", &w->no_repeat, err));
    DPI_TRY(read_real(o, "repeat_penalty", &w->repeat_penalty, err));
    return read_biases(o, r, err);
}

static dpi_status read_object(const json_t *object, reading *r, dpi_wording **wording,
                              dpi_error *err) {
    dpi_error why;
    dpi_wording_init(&r->w);
    r->w.stops = r->stops, r->w.bans = r->bans, r->w.biases = r->biases;
    DPI_TRY(read_all(object, r, err));
    const dpi_status status = dpi_wording_copy(&r->w, wording, &why);
    return status == DPI_STATUS_ARG
               ? dpi_fail(err, DPI_STATUS_FORMAT, "wording: %s", why.message)
           : status != DPI_STATUS_OK ? dpi_fail(err, status, "%s", why.message)
                                     : DPI_STATUS_OK;
}

dpi_status dpi_wording_of_json(const json_t *object, dpi_wording **wording, dpi_error *err) {
    *wording = NULL;
    if (json_is_null(object))
        return DPI_STATUS_OK;
    if (!json_is_object(object))
        return dpi_fail(err, DPI_STATUS_FORMAT, "wording is missing, or no object and not null");
    reading *r = calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "a wording");
    const dpi_status status = read_object(object, r, wording, err);
    free(r);
    return status;
}
