/* line.c - a text as a line of JSON, see dpinfer/release.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/release.h"
#include "pipeline/run.h"
#include "pipeline/journal/json_text.h"

/* NULL: no memory. Members are in the order in which the command `run` writes them. */
static json_t *describe(const dpi_release *r, int32_t index, const char *text, size_t n_bytes,
                        int32_t n_tokens, int32_t end) {
    const char *label;
    size_t n_label;
    char warning[160];
    const bool is_private = dpi_run_is_private(dpi_release_run(r));
    dpi_release_label(r, index, &label, &n_label);
    dpi_run_label(dpi_release_run(r), warning, sizeof warning);
    json_t *line = json_pack("{s:i}", "index", (int)index);
    const bool ok =
        (!label ||
         json_object_set_new(line, "text_label", json_stringn(label, n_label)) == 0) &&
        json_object_set_new(line, "text", json_stringn(text, n_bytes)) == 0 &&
        json_object_set_new(line, "n_tokens", json_integer(n_tokens)) == 0 &&
        json_object_set_new(line, "ended", json_boolean(dpi_end_is_own(end))) == 0 &&
        json_object_set_new(line, "private", json_boolean(is_private)) == 0 &&
        (is_private || json_object_set_new(line, "label", json_string(warning)) == 0);
    if (ok)
        return line;
    json_decref(line);
    return NULL;
}

dpi_status dpi_release_line(const dpi_release *r, int32_t index, const char *text, size_t n_bytes,
                            int32_t n_tokens, int32_t end, char **line, size_t *n_line,
                            dpi_error *err) {
    json_t *object = describe(r, index, text, n_bytes, n_tokens, end);
    char *made = object ? dpi_json_text(object, JSON_COMPACT, n_line) : NULL;
    json_decref(object);
    if (!made)
        return dpi_no_memory(err, "the line of a text");
    *line = made;
    return DPI_STATUS_OK;
}
