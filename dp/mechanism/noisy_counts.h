/* noisy_counts.h - where the values of the mechanism `counts` stand. Internal. */
#ifndef DPI_MECHANISM_COUNTS_H
#define DPI_MECHANISM_COUNTS_H

enum { DPI_COUNTS_EPSILON };  /* parameters */
enum { DPI_COUNTS_VARIANCE }; /* results: in units of 1/256 */

#endif
