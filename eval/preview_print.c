/* preview_print.c - a preview for people, for programs, and as a page. See preview.h. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "draw/draw.h"
#include "eval/preview.h"

/* ---- Text ------------------------------------------------------------------------------------ */

/* With a margin before each line. */
static void print_lines(FILE *to, const char *margin, const char *text) {
    for (size_t n; *text || margin[0] == '\0'; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        fprintf(to, "%s%.*s\n", margin, (int)n, text);
        if (!text[n])
            break;
    }
}

static void print_text(FILE *to, const char *what, int32_t i, const eval_text *t, bool cut) {
    char head[64];
    snprintf(head, sizeof head, "  %s %d%s", what, (int)i + 1, cut ? ", cut" : "");
    fprintf(to, "%s\n", head);
    print_lines(to, "    ", t->text);
}

static void print_all(const eval_preview *p, FILE *to) {
    fprintf(to, "The public prompt, %d tokens\n", (int)p->n_public);
    print_lines(to, "    ", p->public_prompt);
    fprintf(to, "\nThe private prompt with example 1, %d tokens\n", (int)p->n_private);
    print_lines(to, "    ", p->private_prompt);
    fprintf(to, "\nTexts of the public prompt, at most %d tokens\n", (int)p->n_tokens);
    for (int32_t i = 0; i < p->public_texts.n; i++)
        print_text(to, "text", i, &p->public_texts.at[i], p->public_cut[i]);
    fprintf(to, "\nTexts that single examples give\n");
    for (int32_t i = 0; i < p->record_texts.n; i++) {
        print_text(to, "example", i, &p->records.at[i], false);
        print_text(to, "gives text", i, &p->record_texts.at[i], p->record_cut[i]);
    }
    fprintf(to, "\n%s\n", p->n_advice > 0 ? "What is wrong" : "Nothing stands out as wrong.");
    for (int32_t i = 0; i < p->n_advice; i++)
        fprintf(to, "  - %s\n", p->advice[i].text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *texts_json(const eval_texts *texts, const bool *cut, const eval_texts *records) {
    json_t *list = json_array();
    for (int32_t i = 0; i < texts->n; i++) {
        json_t *one = json_pack("{s:s, s:b}", "text", texts->at[i].text, "cut", cut[i]);
        if (one && records)
            json_object_set_new(one, "example", json_string(records->at[i].text));
        json_array_append_new(list, one);
    }
    return list;
}

static bool print_json(const eval_preview *p, FILE *to) {
    json_t *advice = json_array();
    for (int32_t i = 0; i < p->n_advice; i++)
        json_array_append_new(advice, json_pack("{s:s, s:s}", "fault",
                                                eval_fault_name(p->advice[i].fault), "text",
                                                p->advice[i].text));
    json_t *all = json_pack(
        "{s:s, s:i, s:s, s:i, s:i, s:o, s:o, s:o}", "public_prompt", p->public_prompt,
        "public_prompt_tokens", (int)p->n_public, "private_prompt", p->private_prompt,
        "private_prompt_tokens", (int)p->n_private, "tokens", (int)p->n_tokens, "public",
        texts_json(&p->public_texts, p->public_cut, NULL), "examples",
        texts_json(&p->record_texts, p->record_cut, &p->records), "advice", advice);
    const bool ok = all && json_dumpf(all, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
    json_decref(all);
    return ok;
}

/* ---- A page ---------------------------------------------------------------------------------- */

static void put(dpi_draw d, const char *markup) { d.write(d.to, markup, strlen(markup)); }

static void put_text(dpi_draw d, const char *element, const char *text) {
    char tag[32];
    snprintf(tag, sizeof tag, "<%s>", element);
    put(d, tag);
    dpi_draw_text(d, text);
    snprintf(tag, sizeof tag, "</%.*s>\n", (int)strcspn(element, " "), element);
    put(d, tag);
}

static void put_row(dpi_draw d, const char *first, const char *second, bool cut) {
    put(d, "<tr><td class=\"wide\">");
    dpi_draw_text(d, first);
    if (second) {
        put(d, "</td><td class=\"wide\">");
        dpi_draw_text(d, second);
    }
    put(d, cut ? "</td><td class=\"mark\">cut</td></tr>\n" : "</td><td></td></tr>\n");
}

static void print_page(const eval_preview *p, FILE *to) {
    const dpi_draw d = dpi_draw_to_file(to);
    dpi_draw_page_begin(d, "Preview of prompts");
    put_text(d, "h1", "Preview of prompts");
    put_text(d, "h2", p->n_advice > 0 ? "What is wrong" : "Nothing stands out as wrong");
    put(d, p->n_advice > 0 ? "<ul>\n" : "");
    for (int32_t i = 0; i < p->n_advice; i++)
        put_text(d, "li", p->advice[i].text);
    put(d, p->n_advice > 0 ? "</ul>\n" : "");
    put_text(d, "h2", "Texts of the public prompt");
    put(d, "<table>\n<tr><th>text</th><th></th></tr>\n");
    for (int32_t i = 0; i < p->public_texts.n; i++)
        put_row(d, p->public_texts.at[i].text, NULL, p->public_cut[i]);
    put(d, "</table>\n");
    put_text(d, "h2", "Texts that single examples give");
    put(d, "<table>\n<tr><th>example</th><th>its text</th><th></th></tr>\n");
    for (int32_t i = 0; i < p->record_texts.n; i++)
        put_row(d, p->records.at[i].text, p->record_texts.at[i].text, p->record_cut[i]);
    put(d, "</table>\n");
    put_text(d, "h2", "The public prompt, with special tokens");
    put_text(d, "pre", p->public_prompt);
    put_text(d, "h2", "The private prompt with the first example");
    put_text(d, "pre", p->private_prompt);
    dpi_draw_page_end(d);
}

bool eval_preview_print(const eval_preview *p, eval_preview_form form, FILE *to) {
    bool ok = true;
    if (form == EVAL_PREVIEW_JSON)
        ok = print_json(p, to);
    else if (form == EVAL_PREVIEW_HTML)
        print_page(p, to);
    else
        print_all(p, to);
    return fflush(to) == 0 && !ferror(to) && ok;
}
