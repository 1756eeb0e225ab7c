/* audit_steer.c - steering vectors (dpinfer/steer.h) of the audited model: how far one record moves
 * the sum that is released, beside the bound that its noise is drawn for; and that noise. */
#include <math.h>
#include <stdlib.h>

#include "audit/lines.h"
#include "base/status.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "pipeline/steer/steer.h"

enum { N_RECORDS = 6, POSITIONS = 128, N_WORDS = 8 };
static const char PUBLIC_TEXTS[] =
    "{\"text\":\"One warm day, they went.\",\"label\":\"a\"}\n"
    "{\"text\":\"The sun was warm.\",\"label\":\"a\"}\n"
    "{\"text\":\"They went home one day.\",\"label\":\"b\"}\n"
    "{\"text\":\"Home again in the sun.\",\"label\":\"b\"}\n";

static const char NULL_RECORDS[] = "{\"label\":\"a\"}\n{\"label\":\"b\"}\n";

static dpi_status open_lines(dpi_audit *a, const char *lines, size_t n_bytes,
                             dpi_records **records) {
    dpi_records_options o;
    dpi_records_options_init(&o);
    o.label_field = "label";
    return dpi_records_open_buffer(lines, n_bytes, DPI_RECORD_LINE, &o, records, a->err);
}

/* Lines of made-up letters and digits, some long, that begin with public words; record `null` has
 * no text. */
static dpi_status make_records(dpi_audit *a, uint64_t seed, int null, dpi_records **records) {
    dpi_text lines = {0};
    const uint64_t kept = a->seed;
    a->seed = seed; /* the same but for the one */
    for (int i = 0; i < N_RECORDS; i++) {
        const int32_t n = 8 + dpi_audit_below(a, i % 2 ? 8 : 60);
        static const char *const words[] = {"warm", "home", "sun day", "went"};
        const char *word = words[dpi_audit_below(a, 4)]; /* so that none is blank */
        dpi_text_add(&lines, "{\"label\":\"%c\",\"text\":\"%s ", "ab"[i % 2],
                     i != null ? word : "");
        for (int32_t k = 0; k < n; k++) {
            const char letter = "aeiou tnr,.9"[dpi_audit_below(a, 12)];
            if (i != null)
                dpi_text_add(&lines, "%c", letter);
        }
        dpi_text_add(&lines, "\"}\n");
    }
    a->seed = kept;
    const dpi_status status = lines.failed ? dpi_no_memory(a->err, "an audit")
                                           : open_lines(a, lines.data, lines.n_bytes, records);
    free(lines.data);
    return status;
}

/* The release of records made from seed, with their key words, with noise or without; *s is the
 * caller's. */
static dpi_status release(dpi_audit *a, const dpi_records *texts, dpi_records *records,
                          double sigma, double clip, dpi_steer **s) {
    dpi_steer_options o;
    dpi_steer_options_init(&o);
    o.model = a->options.model, o.records = records, o.public_texts = texts;
    o.instruction = (dpi_bytes){"Write {label}.", 14}, o.n_words = N_WORDS;
    o.n_positions = POSITIONS, o.delta = 1e-3, o.clip = clip, o.n_threads = 1;
    o.sigma = sigma, o.epsilon = sigma > 0 ? 0 : INFINITY;
    DPI_TRY(dpi_steer_open(&o, s, a->err));
    dpi_status status = dpi_steer_prepare(*s, a->err);
    return status == DPI_STATUS_OK ? dpi_steer_release(*s, a->err) : status;
}

/* Of the sum without noise, by one record that is there or null, as a share of the bound. */
static dpi_status move_of(dpi_audit *a, const dpi_records *texts, int null, double clip,
                          double *share) {
    const uint64_t seed = dpi_audit_random(a);
    dpi_records *records[2] = {NULL, NULL};
    dpi_steer *s[2] = {NULL, NULL};
    dpi_status status = DPI_STATUS_OK;
    for (int i = 0; i < 2 && status == DPI_STATUS_OK; i++) {
        status = make_records(a, seed, i ? null : -1, &records[i]);
        if (status == DPI_STATUS_OK)
            status = release(a, texts, records[i], 0, clip, &s[i]);
    }
    double square = 0;
    for (int64_t i = 0; status == DPI_STATUS_OK && i < s[0]->n; i++)
        square += pow((double)(s[0]->sum[i] - s[1]->sum[i]), 2);
    if (status == DPI_STATUS_OK)
        *share = sqrt(square) / (double)dpi_gradient_bound(s[0]->n);
    for (int i = 0; i < 2; i++) {
        dpi_steer_free(s[i]);
        dpi_records_close(records[i]);
    }
    return status;
}

static dpi_status audit_moves(dpi_audit *a, const dpi_records *texts) {
    double most = 0;
    const int32_t n = dpi_audit_count(a, 4);
    DPI_TRY(dpi_audit_begin(a, "releases", "steering vectors, one record"));
    for (int32_t i = 0; i < n; i++) {
        double share;
        DPI_TRY(move_of(a, texts, dpi_audit_below(a, N_RECORDS), i % 2 ? 1 : 1e-3, &share));
        most = fmax(most, share);
    }
    a->result.n_cases = n;
    dpi_audit_end(a, "largest move, share of the bound", most, .99, 1);
    return DPI_STATUS_OK;
}

/* The sum of null records is noise alone, of deviation sigma D on each number. */
static dpi_status audit_noise(dpi_audit *a, const dpi_records *texts) {
    static const double SIGMA = 2;
    dpi_records *records;
    double square = 0, most = 0;
    int64_t n = 0;
    dpi_status status = open_lines(a, NULL_RECORDS, sizeof NULL_RECORDS - 1, &records);
    DPI_TRY(status);
    DPI_TRY(dpi_audit_begin(a, "releases", "steering vectors, the noise"));
    for (int32_t i = dpi_audit_count(a, 8); i > 0 && status == DPI_STATUS_OK; i--) {
        dpi_steer *s = NULL;
        status = release(a, texts, records, SIGMA, 1, &s);
        for (int64_t k = 0; status == DPI_STATUS_OK && k < s->n; k++, n++) {
            const double z = (double)s->sum[k] / (SIGMA * (double)dpi_gradient_bound(s->n));
            square += z * z;
            most = fmax(most, fabs(z));
        }
        dpi_steer_free(s);
    }
    dpi_records_close(records);
    DPI_TRY(status);
    a->result.n_cases = n;
    dpi_audit_hold(a, most > 0, "there is no noise");
    /* A chi-square of so many degrees is as good as normal. */
    const double z = (square - (double)n) / sqrt(2 * (double)n);
    dpi_audit_end_chance(a, "p, chi-square", dpi_audit_normal_tail(z));
    return DPI_STATUS_OK;
}

/* Whether the audited model can be steered: one of a layer cannot, nor can one whose logits others
 * compute, or that was trained on records. */
static dpi_status probe(dpi_audit *a, const dpi_records *texts, bool *can) {
    dpi_model_info info;
    dpi_records *records;
    dpi_steer *s = NULL;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(a->options.model, &info, a->err));
    *can = info.n_layer > 1 && info.n_ctx_train >= POSITIONS;
    if (!*can)
        return DPI_STATUS_OK;
    DPI_TRY(open_lines(a, NULL_RECORDS, sizeof NULL_RECORDS - 1, &records));
    const dpi_status status = release(a, texts, records, 1, 1, &s);
    dpi_steer_free(s);
    dpi_records_close(records);
    *can = status == DPI_STATUS_OK;
    return status == DPI_STATUS_UNSUPPORTED ? DPI_STATUS_OK : status;
}

dpi_status dpi_audit_steer(dpi_audit *a) {
    dpi_records *texts;
    bool can = false;
    if (!a->options.model)
        return DPI_STATUS_OK;
    DPI_TRY(open_lines(a, PUBLIC_TEXTS, sizeof PUBLIC_TEXTS - 1, &texts));
    dpi_status status = probe(a, texts, &can);
    if (status == DPI_STATUS_OK && can)
        status = audit_moves(a, texts);
    if (status == DPI_STATUS_OK && can)
        status = audit_noise(a, texts);
    dpi_records_close(texts);
    return status;
}
