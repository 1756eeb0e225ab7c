/* cmd_quantize.c - `dpinfer quantize`: a model with its weights in another type. */
#include "dpinfer/finetune.h"
#include "tools/command/commands.h"
#include "tools/shared/write_model.h"

static int quantize_main(const args *a) {
    if (a->n_positional < 2)
        return cli_fail(CLI_USAGE, "no OUT and TYPE given; see 'dpinfer quantize -h'");
    model_output m;
    int code = write_model_begin(a, a->positional[0], a->positional[1], &m);
    if (code != CLI_OK)
        return code;
    dpi_error err;
    const option_value *v = a->v;
    const dpi_status status =
        v[OPT_LORA].given
            ? dpi_finetune_merge(a->model, v[OPT_LORA].s, (float)v[OPT_LORA_SCALE].d,
                                 a->positional[0], &m.options, &err)
            : dpi_model_quantize(a->model, a->positional[0], &m.options, &err);
    return write_model_end(&m, status, &err);
}

const command command_quantize = {
    .name = "quantize", .bit = CMD_QUANTIZE, .arguments = "IN OUT TYPE", .takes_model = 1,
    .max_positional = 2, .run = quantize_main,
    .summary = "write a model with weights of another type",
    .details =
        "TYPE is F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K for every\n"
        "matrix, or a mixture, Q4_K_M or Q5_K_M, in which the output head and the most sensitive\n"
        "parts are Q6_K. Norms and biases stay as they are. Start from the most precise file\n"
        "there is: what one quantisation has lost, the next cannot bring back. OUT appears when\n"
        "it is whole.\n\n"
        "With --lora ADAPTER the weights of OUT are those of IN with the adapter: one model that\n"
        "needs no adapter any more. TYPE may be KEEP, for the types that the weights have.\n",
};
