/* job_output.c - see job_output.h. */
#include "tools/shared/job_output.h"

#include <stdio.h>
#include <string.h>

#include "dpinfer/memory.h"

/* What the hash is kept as: letters and digits. */
static const char *name_of(text_form form) {
    return form == TEXT_JSONL ? "outputjsonl" : form == TEXT_CSV ? "outputcsv" : "outputtext";
}

void job_output_keep(job_output *o, dpi_journal *journal, text_form form) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    dpi_error err;
    sha256_digest(&o->hash, sizeof digest, digest);
    /* A failure is no loss: it is kept already, or the disk is full. */
    (void)(dpi_journal_keep(journal, name_of(form), digest, sizeof digest, &err) == DPI_STATUS_OK);
}

static bool hash_file(const char *path, uint8_t digest[SHA256_DIGEST_SIZE]) {
    uint8_t part[1 << 14];
    struct sha256_ctx hash;
    FILE *f = fopen(path, "rbe");
    if (!f)
        return false;
    sha256_init(&hash);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        sha256_update(&hash, n, part);
    const bool ok = !ferror(f);
    fclose(f);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, digest);
    return ok;
}

bool job_output_is_there(const dpi_journal *journal, text_form form, const char *path) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    void *kept;
    size_t n_bytes;
    dpi_error err;
    if (dpi_journal_kept(journal, name_of(form), &kept, &n_bytes, &err) != DPI_STATUS_OK || !kept)
        return false;
    const bool same = n_bytes == sizeof digest && hash_file(path, digest) &&
                      memcmp(kept, digest, sizeof digest) == 0;
    dpi_private_free(kept);
    return same;
}
