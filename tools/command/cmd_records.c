/* cmd_records.c - `dpinfer records`: what a run does not say about its records, to their owner. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/release.h"
#include "tools/command/commands.h"
#include "tools/command/records_look.h"
#include "tools/options/records_options.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/terminal.h"

#define NOTICE "PRIVATE: about the records, for their owner alone. Nothing was charged"

enum { SHOWN = 10 }; /* of a list, as text; JSON has all of it */

/* In the order of dpi_record_fault. */
static const struct {
    const char *key, *label;
} faults[LOOK_FAULTS] = {
    {NULL, NULL},
    {"empty", "empty"},
    {"unreadable", "files not readable"},
    {"malformed", "malformed"},
    {"no_field", "without the field"},
    {"not_text", "field is no text"},
    {"encoding", "not of --encoding"},
    {"no_id", "without an ID"},
};

/* What the command has open. */
typedef struct look {
    const args *a;
    const char *path;
    dpi_records_options options;
    dpi_records *records;
    dpi_model *model;
    records_look l;
    facts f;
} look;

/* ---- Places ---------------------------------------------------------------------------------- */

/* A place as people count them, from 1: a line, a row; or the name of a file. */
static json_t *place_of(const look *k, size_t i) {
    const char *name = dpi_records_name(k->records, i);
    return name ? facts_string(name) : json_integer((json_int_t)i + 1);
}

static void print_place(FILE *stream, const json_t *place) {
    if (json_is_string(place))
        fprintf(stream, " %s", json_string_value(place));
    else
        fprintf(stream, " %" JSON_INTEGER_FORMAT, json_integer_value(place));
}

/* A list of places as JSON, whose reference it takes, and as "3: 1 5 9". */
static void add_places(look *k, json_t *object, const char *key, const char *label,
                       json_t *places) {
    const size_t n = json_array_size(places);
    if (n > 0 && k->f.stream) {
        fprintf(k->f.stream, "  %-18s %zu:", label, n);
        for (size_t i = 0; i < n && i < SHOWN; i++)
            print_place(k->f.stream, json_array_get(places, i));
        fprintf(k->f.stream, n > SHOWN ? " ...\n" : "\n");
    }
    k->f.failed |= json_object_set_new(object, key, places) != 0;
}

/* ---- What is there --------------------------------------------------------------------------- */

static void add_faults(look *k) {
    json_t *object = json_object();
    facts_int(&k->f, "n_read", "read", (int64_t)k->l.n_read);
    for (int fault = 1; fault < LOOK_FAULTS; fault++) {
        json_t *places = json_array();
        for (size_t i = 0; i < k->l.n; i++)
            if (k->l.fault[i] == fault)
                json_array_append_new(places, place_of(k, i));
        add_places(k, object, faults[fault].key, faults[fault].label, places);
    }
    facts_json(&k->f, "null", object);
}

static void add_advice(look *k, json_t *list, const char *text) {
    facts_line(&k->f, "advice", "%s", text);
    k->f.failed |= json_array_append_new(list, json_string(text)) != 0;
}

static int add_all_advice(look *k) {
    static const char *const names[] = {"utf8",  "latin1",  "windows-1252",
                                        "utf16", "utf16le", "utf16be"};
    int32_t encoding;
    char text[128];
    dpi_error err;
    if (dpi_records_guess_encoding(k->path, &k->options, &encoding, &err) != DPI_STATUS_OK)
        return cli_fail_option(CLI_RECORDS, &err);
    json_t *list = json_array();
    if (encoding != k->options.encoding) {
        snprintf(text, sizeof text, "--encoding %s reads them better than %s", names[encoding],
                 names[k->options.encoding]);
        add_advice(k, list, text);
    }
    if (k->l.n > 0 && k->l.n_faults[DPI_FAULT_NO_FIELD] == k->l.n)
        add_advice(k, list, "no record has the field of --text-field");
    if (k->l.n_faults[DPI_FAULT_NO_ID] > 0 && k->l.n_read == 0)
        add_advice(k, list, "no record has an ID: is --unit-field the name of its field?");
    facts_json(&k->f, "advice", list);
    return CLI_OK;
}

static int by_size(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The least, middle, 90 % and most of n numbers, which are sorted. */
static void add_lengths(look *k, const char *what, int64_t *lengths, size_t n) {
    int64_t sum = 0;
    if (n == 0)
        return;
    qsort(lengths, n, sizeof *lengths, by_size);
    for (size_t i = 0; i < n; i++)
        sum += lengths[i];
    const int64_t middle = lengths[(n - 1) / 2], high = lengths[(9 * n + 9) / 10 - 1];
    facts_json(&k->f, what,
               json_pack("{s:I, s:I, s:I, s:I, s:I}", "least", (json_int_t)lengths[0], "middle",
                         (json_int_t)middle, "p90", (json_int_t)high, "most",
                         (json_int_t)lengths[n - 1], "all", (json_int_t)sum));
    facts_line(&k->f, what,
               "%" PRId64 " to %" PRId64 ", half of them up to %" PRId64 ", 90 %% up to %" PRId64,
               lengths[0], lengths[n - 1], middle, high);
}

static int add_all_lengths(look *k) {
    const records_look *l = &k->l;
    int64_t *lengths = dpi_private_malloc((l->n_read + 1) * sizeof *lengths);
    if (!lengths)
        return cli_no_memory("the records");
    for (size_t i = 0; i < l->n_read; i++)
        lengths[i] = (int64_t)l->n_bytes[l->sorted[i]];
    add_lengths(k, "bytes", lengths, l->n_read);
    for (size_t i = 0; i < l->n_read && l->n_tokens; i++)
        lengths[i] = l->n_tokens[l->sorted[i]];
    if (l->n_tokens)
        add_lengths(k, "tokens", lengths, l->n_read);
    dpi_private_free(lengths);
    return CLI_OK;
}

/* What --max-ref-tokens cuts. */
static void add_cut(look *k) {
    const int64_t most = k->a->v[OPT_MAX_REF_TOKENS].i;
    json_t *places = json_array();
    int64_t lost = 0, all = 0;
    for (size_t i = 0; i < k->l.n; i++) {
        all += k->l.n_tokens[i];
        if (k->l.n_tokens[i] <= most)
            continue;
        lost += k->l.n_tokens[i] - most;
        json_array_append_new(places, place_of(k, i));
    }
    add_places(k, k->f.json, "cut", "cut", places);
    facts_json(&k->f, "n_lost_tokens", json_integer(lost));
    if (lost > 0)
        facts_line(&k->f, "", "by --max-ref-tokens, which loses %.1f %% of all tokens",
                   100 * (double)lost / (double)all);
}

/* Each text that stands there more than once: the places of it. */
static void add_copies(look *k) {
    json_t *groups = json_array();
    size_t n_more = 0;
    for (size_t i = 1; i < k->l.n_read; i++) {
        if (!look_is_copy(&k->l, i))
            continue;
        json_t *group = json_array_get(groups, json_array_size(groups) - 1);
        if (i == 1 || !look_is_copy(&k->l, i - 1)) {
            group = json_pack("[o]", place_of(k, k->l.sorted[i - 1]));
            json_array_append_new(groups, group);
        }
        json_array_append_new(group, place_of(k, k->l.sorted[i]));
        n_more++;
    }
    for (size_t g = 0; g < json_array_size(groups) && g < SHOWN && k->f.stream; g++) {
        const json_t *group = json_array_get(groups, g);
        fprintf(k->f.stream, "  %-18s", g == 0 ? "copies of a text" : "");
        for (size_t i = 0; i < json_array_size(group) && i < SHOWN; i++)
            print_place(k->f.stream, json_array_get(group, i));
        fprintf(k->f.stream, json_array_size(group) > SHOWN ? " ...\n" : "\n");
    }
    if (json_array_size(groups) > SHOWN)
        facts_line(&k->f, "", "and %zu more texts", json_array_size(groups) - SHOWN);
    facts_json(&k->f, "n_copies", json_integer((json_int_t)n_more));
    facts_json(&k->f, "copies", groups);
}

/* ---- Units and labels: no name goes through memory that is not wiped ------------------------- */

static json_t *name_json(const char *name, size_t n_bytes) {
    return name ? json_stringn(name, n_bytes) : json_null();
}

/* "ID  records". False: out of memory. */
static bool print_name(const char *label, const json_t *name, const char *counts) {
    const char *text = json_is_string(name) ? json_string_value(name) : "(none)";
    size_t n;
    char *shown = terminal_text(text, strlen(text), false, &n);
    if (!shown)
        return false;
    printf("  %-18s %s: %s\n", label, shown, counts);
    explicit_bzero(shown, n);
    free(shown);
    return true;
}

static int by_records(const void *a, const void *b) {
    const json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "n_records"));
    const json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "n_records"));
    return (x < y) - (x > y);
}

/* Those with the most records. */
static int print_largest(const json_t *list, const char *label, const char *key) {
    const size_t n = json_array_size(list);
    json_t **all = dpi_private_malloc((n + 1) * sizeof *all);
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < n; i++)
        all[i] = json_array_get(list, i);
    if (ok)
        qsort(all, n, sizeof *all, by_records);
    for (size_t i = 0; ok && i < n && i < SHOWN; i++) {
        char counts[64];
        const json_t *units = json_object_get(all[i], "n_units");
        const json_int_t records = json_integer_value(json_object_get(all[i], "n_records"));
        if (units)
            snprintf(counts, sizeof counts, "%" JSON_INTEGER_FORMAT " units, %" JSON_INTEGER_FORMAT
                     " records", json_integer_value(units), records);
        else
            snprintf(counts, sizeof counts, "%" JSON_INTEGER_FORMAT " records", records);
        ok = print_name(i == 0 ? label : "", json_object_get(all[i], key), counts);
    }
    if (n > SHOWN)
        printf("  %-18s and %zu more\n", "", n - SHOWN);
    dpi_private_free(all);
    return ok ? CLI_OK : cli_no_memory("the records");
}

/* One more unit of a label, with so many records. False: out of memory. */
static bool count_label(json_t *labels, json_t *places, const char *label, size_t n_bytes,
                        size_t n_records) {
    char *key = dpi_private_malloc(n_bytes + 2); /* without a label: an empty name */
    if (!key)
        return false;
    snprintf(key, 2, "%s", label ? "l" : "");
    if (label)
        memcpy(key + 1, label, n_bytes);
    key[label ? n_bytes + 1 : 0] = '\0';
    json_t *at = json_object_get(places, key);
    if (!at) {
        at = json_pack("{s:o, s:i, s:i}", "label", name_json(label, n_bytes), "n_units", 0,
                       "n_records", 0);
        json_array_append(labels, at);
        json_object_set_new(places, key, at);
    }
    json_t *units = json_object_get(at, "n_units"), *records = json_object_get(at, "n_records");
    json_integer_set(units, json_integer_value(units) + 1);
    json_integer_set(records, json_integer_value(records) + (json_int_t)n_records);
    dpi_private_free(key);
    return true;
}

static int64_t max_per_unit(const args *a) {
    return a->v[OPT_MAX_PER_UNIT].given ? a->v[OPT_MAX_PER_UNIT].i : DPI_MAX_PER_UNIT_DEFAULT;
}

static void add_units(look *k) {
    const bool has_units = dpi_records_has_units(k->records);
    const bool has_labels = dpi_records_has_labels(k->records);
    const size_t n = dpi_records_unit_count(k->records);
    const size_t most = has_units ? (size_t)max_per_unit(k->a) : 1;
    json_t *units = json_array(), *labels = json_array(), *places = json_object();
    size_t n_beyond = 0, n_other = 0;
    for (size_t u = 0; u < n && (has_units || has_labels); u++) {
        const char *name;
        size_t n_bytes, n_all, n_used;
        dpi_records_unit_size(k->records, u, &n_all, &n_used);
        n_other += n_all - n_used;
        n_beyond += n_used > most ? n_used - most : 0;
        dpi_records_unit_label(k->records, u, &name, &n_bytes);
        if (has_labels)
            k->f.failed |= !count_label(labels, places, name, n_bytes, n_used);
        dpi_records_unit_id(k->records, u, &name, &n_bytes);
        if (has_units && name)
            json_array_append_new(units, json_pack("{s:o, s:I}", "id", name_json(name, n_bytes),
                                                   "n_records", (json_int_t)n_all));
    }
    json_decref(places);
    if (has_units) {
        facts_int(&k->f, "n_units", "units", (int64_t)json_array_size(units));
        facts_int(&k->f, "n_units_of_run", NULL, (int64_t)n);
        if (n > json_array_size(units))
            facts_line(&k->f, "", "a run says %zu: each record without an ID, or malformed, is "
                       "one, too, and adds nothing", n);
        facts_int(&k->f, "n_beyond", "beyond M", (int64_t)n_beyond);
        facts_line(&k->f, "", "records that are not used, as a unit has more than M = %zu", most);
        facts_json(&k->f, "units", units);
    } else {
        json_decref(units);
    }
    if (has_labels) {
        facts_int(&k->f, "n_labels", "labels", (int64_t)json_array_size(labels));
        if (n_other > 0)
            facts_line(&k->f, "", "%zu records have another one than their unit: not used",
                       n_other);
        facts_json(&k->f, "n_other_label", json_integer((json_int_t)n_other));
        facts_json(&k->f, "labels", labels);
    } else {
        json_decref(labels);
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static int open_records(look *k) {
    dpi_error err;
    const int code = records_options(k->a, &k->options);
    if (code != CLI_OK)
        return code;
    if (dpi_records_open(k->path, &k->options, &k->records, &err) == DPI_STATUS_OK)
        return CLI_OK;
    const char delimiter = dpi_records_guess_delimiter(k->path, &k->options);
    if (delimiter)
        cli_note("advice: with --delimiter '%s' it has these columns",
                 delimiter == '\t' ? "tab" : (char[2]){delimiter, '\0'});
    return cli_fail_option(CLI_RECORDS, &err);
}

static int open_model(look *k) {
    dpi_model_options options = options_model(k->a);
    options.vocab_only = 1;
    if (k->a->v[OPT_MODEL].given)
        return cli_open_model(k->a->v[OPT_MODEL].s, &options, &k->model, NULL);
    return k->a->v[OPT_MAX_REF_TOKENS].given
               ? cli_fail(CLI_USAGE, "--max-ref-tokens needs -m MODEL, which has the tokens")
               : CLI_OK;
}

static int tell(look *k) {
    facts_text(&k->f, "notice", "notice", NOTICE);
    facts_int(&k->f, "n_records", "records", (int64_t)k->l.n);
    facts_line(&k->f, "of which one is", "%s",
               dpi_record_kind_text(dpi_records_kind(k->records)));
    add_faults(k);
    int code = add_all_advice(k);
    if (code == CLI_OK)
        code = add_all_lengths(k);
    if (k->a->v[OPT_MAX_REF_TOKENS].given)
        add_cut(k);
    add_copies(k);
    add_units(k);
    if (code == CLI_OK)
        code = facts_print(&k->f, k->a->v[OPT_JSON].i, stdout);
    if (code == CLI_OK && !k->a->v[OPT_JSON].i) {
        code = print_largest(json_object_get(k->f.json, "units"), "records of a unit", "id");
        if (code == CLI_OK)
            code = print_largest(json_object_get(k->f.json, "labels"), "label", "label");
    }
    return code;
}

static int records_main(const args *a) {
    look k = {.a = a, .path = a->n_positional > 0 ? a->positional[0] : NULL};
    if (!k.path)
        return cli_fail(CLI_USAGE, "no RECORDS given; see 'dpinfer records -h'");
    int code = open_records(&k);
    if (code == CLI_OK)
        code = open_model(&k);
    if (code == CLI_OK)
        code = look_read(k.records, k.model, &k.l);
    facts_init(&k.f);
    if (code == CLI_OK)
        code = tell(&k);
    facts_free(&k.f);
    look_free(&k.l);
    dpi_model_close(k.model);
    dpi_records_close(k.records);
    return code;
}

const command command_records = {
    .name = "records", .bit = CMD_RECORDS, .arguments = "RECORDS", .max_positional = 1,
    .run = records_main,
    .summary = "what a run does not say about its records, to their owner: PRIVATE",
    .details =
        "Reads the folder of .txt files, the .jsonl or the .csv as 'run' does with the same\n"
        "options, and tells what that must keep to itself: which records are null and why,\n"
        "lengths, texts that stand there more than once, units and labels with their records,\n"
        "and which encoding or delimiter would fit better. With -m MODEL lengths are in tokens,\n"
        "too, and what --max-ref-tokens cuts. Lines and rows are counted from 1, the header row\n"
        "not. Nothing is charged, and no text is drawn.\n\n"
        "All that it prints is PRIVATE: it is for whoever may read the records, and no part of\n"
        "what may be released.\n",
};
