/* cmd_inspect.c - `dpinfer inspect`: what a model file says. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dpinfer/finetune.h"
#include "tools/command/commands.h"
#include "tools/terminal/facts.h"

static void add_info(facts *f, const dpi_model_info *info) {
    facts_text(f, "architecture", "architecture", info->architecture);
    facts_text(f, "name", "name", info->name);
    facts_text(f, "weight_types", "weight types", info->weight_types);
    facts_int(f, "n_params", "parameters", info->n_params);
    facts_int(f, "weight_bytes", "bytes of weights", info->weight_bytes);
    facts_int(f, "n_layer", "n_layer", info->n_layer);
    facts_int(f, "n_embd", "n_embd", info->n_embd);
    facts_int(f, "n_ff", "n_ff", info->n_ff);
    facts_int(f, "n_head", "n_head", info->n_head);
    facts_int(f, "n_kv_head", "n_kv_head", info->n_kv_head);
    if (info->n_recurrent > 0)
        facts_int(f, "n_recurrent", "n_recurrent", info->n_recurrent);
    facts_int(f, "head_dim", "head_dim", info->head_dim);
    facts_int(f, "head_dim_v", "head_dim_v", info->head_dim_v);
    facts_int(f, "n_rot", "n_rot", info->n_rot);
    facts_int(f, "n_vocab", "n_vocab", info->n_vocab);
    facts_int(f, "n_ctx_train", "n_ctx_train", info->n_ctx_train);
    facts_real(f, "rope_freq_base", "rope_freq_base", (double)info->rope_freq_base);
    facts_real(f, "rope_freq_scale", "rope_freq_scale", (double)info->rope_freq_scale);
    facts_real(f, "rms_eps", "rms_eps", (double)info->rms_eps);
    const char *chat = dpi_chat_name(info->chat_template);
    facts_text(f, "chat_template", "chat template", chat ? chat : "not recognised");
    if (!chat)
        facts_text(f, "chat_nearest", "nearest template", dpi_chat_name(info->chat_nearest));
    facts_bool(f, "tied_output", "tied output", info->tied_output);
    if (info->sampling_top_k > 0)
        facts_int(f, "sampling_top_k", "recommended k", info->sampling_top_k);
    if (info->sampling_temp > 0)
        facts_real(f, "sampling_temp", "recommended tau", info->sampling_temp);
    facts_bool(f, "random_weights", "random weights", info->random_weights);
}

/* Of an adapter of finetune: what it guarantees. */
static void add_claim(facts *f, const char *path) {
    dpi_claim c;
    char label[160];
    int32_t holds;
    if (dpi_finetune_read_claim(path, &c, &holds, NULL) != DPI_STATUS_OK)
        return;
    dpi_claim_label(&c, label, sizeof label);
    facts_text(f, "adapter_label", "adapter's label", label);
    if (isfinite(c.epsilon))
        facts_bound(f, "adapter_epsilon", "adapter's epsilon", c.epsilon);
    facts_real(f, "adapter_delta", "adapter's delta", c.delta);
    facts_bool(f, "adapter_claim_holds", "its claim holds", holds);
}

static void add_adapter(facts *f, const dpi_model_info *info, const char *path) {
    facts_text(f, "adapter", "adapter", info->adapter_name);
    facts_int(f, "adapter_rank", "adapter's rank", info->adapter_rank);
    facts_int(f, "n_adapted", "adapted matrices", info->n_adapted);
    facts_real(f, "adapter_scale", "adapter's scale", (double)info->adapter_scale);
    add_claim(f, path);
}

static int add_metadata(facts *f, const dpi_model *model) {
    json_t *list = json_array();
    facts_json(f, "metadata", list);
    facts_gap(f);
    int64_t n = dpi_model_metadata_count(model);
    for (int64_t i = 0; i < n; i++) {
        const char *key, *type;
        char value[1024];
        dpi_error err;
        if (dpi_model_metadata_get(model, i, &key, &type, value, sizeof value, &err) !=
            DPI_STATUS_OK)
            return cli_fail_library(CLI_MODEL, &err);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "key", facts_string(key), "type",
                                              facts_string(type), "value", facts_string(value)));
        char line[1200];
        snprintf(line, sizeof line, "%.120s (%.40s) = %s", key, type, value);
        facts_text(f, NULL, "metadata", line);
    }
    return CLI_OK;
}

static int add_tensors(facts *f, const dpi_model *model) {
    json_t *list = json_array();
    facts_json(f, "tensors", list);
    facts_gap(f);
    int64_t n = dpi_model_tensor_count(model);
    for (int64_t i = 0; i < n; i++) {
        const char *name, *type;
        int64_t shape[4];
        uint64_t offset, n_bytes;
        dpi_error err;
        if (dpi_model_tensor_get(model, i, &name, &type, shape, &offset, &n_bytes, &err) !=
            DPI_STATUS_OK)
            return cli_fail_library(CLI_MODEL, &err);
        json_t *dims = json_pack("[I, I, I, I]", (json_int_t)shape[0], (json_int_t)shape[1],
                                 (json_int_t)shape[2], (json_int_t)shape[3]);
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:I, s:I}", "name",
                                              facts_string(name), "type", type, "shape", dims,
                                              "offset", (json_int_t)offset, "bytes",
                                              (json_int_t)n_bytes));
        char line[256];
        snprintf(line, sizeof line, "%-28.64s %-7.16s [%" PRId64 ", %" PRId64 ", %" PRId64
                 ", %" PRId64 "] %" PRIu64 " bytes at %" PRIu64, name, type, shape[0], shape[1],
                 shape[2], shape[3], n_bytes, offset);
        facts_text(f, NULL, "tensor", line);
    }
    return CLI_OK;
}

/* What the file says keeps it from being run: opening it has found that. */
static int refuse(const args *a, const dpi_error *err) {
    const bool is_known = err->code == DPI_STATUS_FORMAT || err->code == DPI_STATUS_UNSUPPORTED ||
                          err->code == DPI_STATUS_NUMERIC;
    facts f;
    facts_init(&f);
    facts_bool(&f, "runs", NULL, false);
    facts_text(&f, "missing", NULL, err->message);
    const int code = is_known && a->v[OPT_JSON].i ? facts_print(&f, true, stdout) : CLI_OK;
    facts_free(&f);
    return code == CLI_OK ? cli_fail_library(CLI_MODEL, err) : code;
}

static int inspect_main(const args *a) {
    dpi_model *model;
    dpi_model_info info;
    dpi_error err;
    dpi_model_options options = options_model(a);
    options.check_weights = a->v[OPT_CHECK].i != 0;
    options.repack = DPI_REPACK_NONE;
    if (dpi_model_open(a->model, &options, &model, &err) != DPI_STATUS_OK)
        return refuse(a, &err);
    dpi_model_info_init(&info);
    int code = dpi_model_info_get(model, &info, &err) == DPI_STATUS_OK
                   ? CLI_OK
                   : cli_fail_library(CLI_MODEL, &err);
    facts f;
    facts_init(&f);
    facts_bool(&f, "runs", "runs here", true);
    add_info(&f, &info);
    if (info.adapter_rank > 0)
        add_adapter(&f, &info, a->v[OPT_LORA].s);
    if (info.n_controlled > 0)
        facts_int(&f, "control_vector_layers", "layers with a vector", info.n_controlled);
    if (info.n_control_sets > 1)
        facts_int(&f, "control_vector_sets", "sets of vectors", info.n_control_sets);
    if (a->v[OPT_CHECK].i)
        facts_text(&f, "check", "check", "every weight is finite");
    if (code == CLI_OK)
        code = add_metadata(&f, model);
    if (code == CLI_OK)
        code = add_tensors(&f, model);
    if (code == CLI_OK)
        code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    facts_free(&f);
    dpi_model_close(model);
    return code;
}

const command command_inspect = {
    .name = "inspect", .bit = CMD_INSPECT, .arguments = "MODEL", .takes_model = 1,
    .run = inspect_main,
    .summary = "what a model file says",
    .details =
        "Says whether the model runs here, and shows its shape, its metadata and its tensors\n"
        "(columns first). Of a file that does not run it says what is missing, as every command\n"
        "does: the architecture, a tensor, a key, a weight type or a tokenizer; exit code 3, and\n"
        "with --json \"runs\": false, \"missing\": TEXT. --check also reads every weight.\n",
};
