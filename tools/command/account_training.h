/* account_training.h - `dpinfer account --sigma`: what training under noise costs. */
#ifndef ACCOUNT_TRAINING_H
#define ACCOUNT_TRAINING_H

#include <stdbool.h>

#include "tools/command/commands.h"

/* True if the options are about training: --sigma, --sampling or --steps. */
bool account_training_wanted(const args *a);
/* Prints epsilon for sigma, or sigma for epsilon. Returns the exit code. */
int account_training(const args *a);

#endif
