/* cmd_make_model.c - `dpinfer make-model`: a model of a given shape with random weights. */
#include <string.h>

#include "tools/command/commands.h"
#include "tools/shared/write_model.h"

/* The options that stand for a field of a shape. */
static void override(int32_t *field, const option_value *value) {
    if (value->given)
        *field = (int32_t)value->i;
}

static int read_shape(const args *a, dpi_model_shape *shape) {
    dpi_error err;
    dpi_model_shape_init(shape);
    if (strcmp(a->v[OPT_SHAPE].s, "custom") == 0) {
        *shape = (dpi_model_shape){.struct_size = sizeof *shape, .n_layer = 2, .n_embd = 256,
                                   .n_ff = 512, .n_head = 4, .n_kv_head = 2, .n_vocab = 1024,
                                   .n_ctx_train = 2048, .rope_freq_base = 10000};
    } else if (dpi_model_shape_find(a->v[OPT_SHAPE].s, shape, &err) != DPI_STATUS_OK) {
        return cli_fail_library(CLI_USAGE, &err);
    }
    override(&shape->n_layer, &a->v[OPT_LAYERS]);
    override(&shape->n_embd, &a->v[OPT_EMBD]);
    override(&shape->n_ff, &a->v[OPT_FF]);
    override(&shape->n_head, &a->v[OPT_HEADS]);
    override(&shape->n_kv_head, &a->v[OPT_KV_HEADS]);
    override(&shape->n_vocab, &a->v[OPT_VOCAB_SIZE]);
    override(&shape->tied_output, &a->v[OPT_TIED]);
    return CLI_OK;
}

static int make_model_main(const args *a) {
    const char *path = a->v[OPT_OUTPUT].s;
    if (!a->v[OPT_OUTPUT].given)
        return cli_fail(CLI_USAGE, "no -o FILE given; see 'dpinfer make-model -h'");
    dpi_model_shape shape;
    int code = read_shape(a, &shape);
    if (code != CLI_OK)
        return code;
    model_output m;
    code = write_model_begin(a, path, a->v[OPT_TYPE].s, &m);
    if (code != CLI_OK)
        return code;
    dpi_error err;
    dpi_status status = dpi_model_make(&shape, a->v[OPT_VOCAB].s, (uint64_t)a->v[OPT_SEED].i, path,
                                       &m.options, &err);
    return write_model_end(&m, status, &err);
}

const command command_make_model = {
    .name = "make-model", .bit = CMD_MAKE_MODEL, .arguments = "-o FILE",
    .run = make_model_main,
    .summary = "write a model with random weights, for timing",
    .details =
        "A model that computes as long as a real one of its shape and writes nonsense; its\n"
        "metadata says so. A custom shape is 2 layers of 256 (ff 512, 4 heads, 2 KV heads, 1024\n"
        "tokens) but for what the options below say. The vocabulary is a synthetic SPM one unless\n"
        "--vocab gives another. The same --seed (0 if not given) writes the same file.\n",
};
