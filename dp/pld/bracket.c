#include "dp/pld/bracket.h"

#include <float.h>
#include <math.h>

bracket bracket_make(double low, double at_low, double high, double at_high) {
    return (bracket){low, high, at_low, at_high, 0, INFINITY, INFINITY};
}

double bracket_next(const bracket *b, double least) {
    const double width = b->high - b->low;
    double part = b->at_low / (b->at_low - b->at_high);
    /* Two evaluations that did not halve the bracket, or values without a ratio. */
    if (!(part > 0 && part < 1) || width > b->width / 2)
        part = 0.5;
    const double place = b->low + least * rint(part * width / least);
    return fmin(fmax(place, b->low + least), b->high - least);
}

double bracket_value(double found, double wanted) {
    const double share = log(found / wanted);
    return found <= wanted ? fmin(share, 0) : fmax(share, DBL_MIN);
}

/* An end that stays twice is given half of its weight, so that the next place is nearer to it. */
void bracket_put(bracket *b, double place, double value) {
    const int side = value <= 0 ? 1 : -1;
    b->width = b->last_width;
    b->last_width = b->high - b->low;
    if (side < 0) {
        b->low = place, b->at_low = value;
        b->at_high *= b->side == side ? 0.5 : 1;
    } else {
        b->high = place, b->at_high = value;
        b->at_low *= b->side == side ? 0.5 : 1;
    }
    b->side = side;
}
