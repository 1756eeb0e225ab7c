/* fuzz_model.c - libFuzzer target: a tiny model with some of its bytes changed is opened, reads a
 * prompt and takes two steps, with one instruction set or all. Refused or computed: nothing else.
 *
 * The input: one byte for the model, one for how it is run, then edits of 5 bytes each: 3 of where,
 * one of how, one of the new value. So a kept input is a few bytes long. */
#include "dpinfer.h"
#include "kernels/weight_types.h"
#include "tests/support/tiny_model.h"
#include "tests/fuzz/fuzz.h"

enum { N_MODELS = 8, EDIT = 5, MAX_EDITS = 64, N_CTX = 32 };

static struct {
    unsigned char *image; /* 64-byte aligned, as dpi_model_open_buffer wants it */
    size_t n_bytes;
} models[N_MODELS];

static void build_models(void) {
    static const uint32_t types[N_MODELS] = {DPI_TYPE_F32,  DPI_TYPE_F16,  DPI_TYPE_Q8_0,
                                             DPI_TYPE_Q4_0, DPI_TYPE_Q4_K, DPI_TYPE_Q6_K,
                                             DPI_TYPE_BF16, DPI_TYPE_Q5_1};
    for (int i = 0; i < N_MODELS; i++) {
        tiny_spec s = tiny_default();
        bool blocks_of_256 = types[i] == DPI_TYPE_Q4_K || types[i] == DPI_TYPE_Q6_K;
        s.n_layer = 1 + i % 2, s.n_vocab = 300, s.type = types[i];
        s.n_embd = blocks_of_256 ? 256 : 32, s.n_ff = blocks_of_256 ? 256 : 64;
        s.n_head = blocks_of_256 ? 8 : 4;
        s.bias = i % 2, s.tied = i % 3 != 0, s.rope_freqs = i % 4 == 1;
        s.rope_factor = i % 4 == 2 ? 4 : 0, s.llama3_factor = i % 4 == 3 ? 8 : 0;
        void *image;
        tiny_build(&s, (uint64_t)i + 1, &image, &models[i].n_bytes);
        models[i].image = image;
    }
}

/* Half of the edits go to the first 8 KB, where the keys and the shapes are. */
static void apply_edit(unsigned char *image, size_t n_bytes, const uint8_t *edit) {
    size_t at = (size_t)edit[0] | (size_t)edit[1] << 8 | (size_t)edit[2] << 16;
    size_t range = edit[3] & 1 && n_bytes > 8192 ? 8192 : n_bytes;
    unsigned char *p = image + at % range, *end = image + n_bytes;
    switch (edit[3] >> 1 & 3) {
    case 0:
        *p = edit[4];
        break;
    case 1:
        *p ^= (unsigned char)(1 << (edit[4] & 7));
        break;
    case 2: /* a number at an end of its range */
        for (int i = 0; i < (edit[4] & 8 ? 8 : 4) && p + i < end; i++)
            p[i] = edit[4] & 1 ? 0xff : 0;
        break;
    default: /* a float or a half that is not finite, or huge */
        for (int i = 0; i < 4 && p + i < end; i++)
            p[i] = (unsigned char)((edit[4] & 1 ? 0x7f800000u : 0x7f7fffffu) >> 8 * i);
        break;
    }
}

static void run_session(const dpi_model *model, int32_t isa, uint8_t how) {
    DEFAULTS(dpi_session_options, o);
    dpi_session *session = NULL;
    dpi_error err = {0};
    o.n_seq = 2, o.n_ctx = N_CTX, o.n_threads = 1, o.isa = isa, o.exact = how & 1;
    o.kv_type = how & 2 ? DPI_KV_F32 : DPI_KV_F16, o.prefill = DPI_PREFILL_KERNELS;
    if (!is_ok(dpi_session_create(model, &o, &session, &err), &err))
        return;
    const int32_t prompt[] = {1, 70, 5, 261, 298}, seqs[] = {0, 1};
    int32_t tokens[] = {299, 3};
    if (is_ok(dpi_session_prefill(session, 0, prompt, 5, NULL, &err), &err) &&
        is_ok(dpi_session_fork(session, 0, 1, 3, &err), &err))
        for (int step = 0; step < 2; step++) {
            if (!is_ok(dpi_session_step(session, 2, seqs, tokens, &err), &err))
                break;
            const float *logits = dpi_session_logits(session, step);
            float sum = 0;
            for (int i = 0; i < 300; i++)
                sum += logits[i];
            volatile float read = sum;
            (void)read;
            tokens[0] = tokens[1] = 260 + step;
        }
    dpi_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (!models[0].image)
        build_models();
    if (n_bytes < 2 || n_bytes > 2 + EDIT * MAX_EDITS)
        return 0;
    size_t which = data[0] % N_MODELS, n_image = models[which].n_bytes;
    uint8_t how = data[1];
    unsigned char *image = aligned_alloc(64, (n_image + 63) / 64 * 64);
    require(image != NULL);
    memcpy(image, models[which].image, n_image);
    for (size_t i = 2; i + EDIT <= n_bytes; i += EDIT)
        apply_edit(image, n_image, data + i);
    DEFAULTS(dpi_model_options, options);
    options.check_weights = how >> 2 & 1;
    options.repack = how >> 3 & 1 ? DPI_REPACK_NONE : DPI_REPACK_SOON;
    dpi_model *model = NULL;
    dpi_error err = {0};
    if (is_ok(dpi_model_open_buffer(image, n_image, &options, &model, &err), &err)) {
        int32_t n = 0, at = 0;
        for (int32_t i = dpi_isa_next(DPI_ISA_AUTO); i != DPI_ISA_AUTO; i = dpi_isa_next(i))
            n++;
        for (int32_t i = dpi_isa_next(DPI_ISA_AUTO); i != DPI_ISA_AUTO; i = dpi_isa_next(i), at++)
            if (at == how / 16 % n || how >= 240) /* all of them */
                run_session(model, i, how);
        dpi_model_close(model);
    } else {
        require(!model);
    }
    free(image);
    return 0;
}
