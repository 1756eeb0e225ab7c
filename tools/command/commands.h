/* commands.h - the commands, one file each (cmd_NAME.c), and the table of them in dpinfer.c. */
#ifndef DPI_COMMANDS_H
#define DPI_COMMANDS_H

#include "tools/options/options.h"

extern const command command_run, command_plan, command_account, command_inspect, command_tokenize,
    command_logits, command_quantize, command_make_model, command_bench, command_verify,
    command_audit, command_pretrain, command_demo, command_completion,
    command_ledger, command_merge, command_resume, command_perturb,
    command_attack, command_serve, command_infer, command_finetune, command_generate, command_steer,
    command_eval, command_augpe, command_records, command_statistic, command_preview;

/* The i-th command in the order of the help; NULL after the last one. */
const command *command_at(int i);

#endif
