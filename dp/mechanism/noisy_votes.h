/* noisy_votes.h - where the values of the mechanism `votes` stand. Internal. */
#ifndef DPI_MECHANISM_VOTES_H
#define DPI_MECHANISM_VOTES_H

enum { DPI_VOTES_ROUNDS_MAX = 1000 };

/* Parameters. */
enum {
    DPI_VOTES_RHO,
    DPI_VOTES_EPSILON,
    DPI_VOTES_TEXTS,
    DPI_VOTES_CANDIDATES,
    DPI_VOTES_LOOKAHEAD,
    DPI_VOTES_SELECTION,
    DPI_VOTES_THRESHOLD,
    DPI_VOTES_VARIATION,
    DPI_VOTES_CHANGE,
    DPI_VOTES_TOKENS,
    DPI_VOTES_TOP_K,
    DPI_VOTES_TAU,
    DPI_VOTES_REMOTE
};
/* Results: of the noise of a count, in units of 1/256; rho of a round. */
enum { DPI_VOTES_VARIANCE, DPI_VOTES_RHO_ROUND };

#endif
