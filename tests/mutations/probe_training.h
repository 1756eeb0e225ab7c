/* probe_training.h - what the accountants of training must hold, for mutants. */
#ifndef PROBE_TRAINING_H
#define PROBE_TRAINING_H

/* The first thing that does not hold, static; NULL: all does. */
const char *probe_training(void);

#endif
