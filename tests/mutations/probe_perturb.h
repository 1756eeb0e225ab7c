/* probe_perturb.h - what words that are replaced must hold, for mutants. */
#ifndef PROBE_PERTURB_H
#define PROBE_PERTURB_H

/* The first thing that does not hold, static; NULL: all does. */
const char *probe_perturb(void);

#endif
