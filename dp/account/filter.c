#include "dp/account/filter.h"

#include <math.h>

dpi_u128 dpi_filter_limit(double rho) {
    /* 1 / ln2^2 = 2.08136898100560779787..., the double below it; then one step down for the
     * product. The shift by 2^99 is exact, and so is the conversion of what is at least 1. */
    const double inverse = 0x1.0a6a4c7c29f9ap+1;
    return (dpi_u128)ldexp(nextafter(rho * inverse, 0), 99);
}
