/* attack_remote.h - a model elsewhere guesses the words behind perturbed ones. */
#ifndef DPI_ATTACK_REMOTE_H
#define DPI_ATTACK_REMOTE_H

#include "audit/attack/attack.h"
#include "tools/remote/remote.h"

/* Shows the perturbed words of the attack's last run to the model, with the prompt of Tong et al.
 * 2025, Appendix D, and counts what it guesses in *result. Nothing but these words leaves. CLI_OK,
 * or a code with a message. */
int attack_remote(const dpi_attack *attack, const remote_options *options,
                  dpi_attack_result *result);

/* Most tokens of an answer. */
int attack_remote_tokens(void);

#endif
