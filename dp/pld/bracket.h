/* bracket.h - where a falling function passes zero, with few evaluations: regula falsi, with the
 * weights of Illinois (Dowell and Jarratt 1971), and a bisection where that is slow. */
#ifndef DPI_PLD_BRACKET_H
#define DPI_PLD_BRACKET_H

/* low < high; the function is above 0 at low and at most 0 at high. Both places have been tried,
 * so that high can be returned as one that is known to be good. Values may be infinite. */
typedef struct bracket {
    double low, high;
    double at_low, at_high; /* weights of the ends: the values, or parts of them */
    int side;               /* -1: low has moved last, 1: high, 0: none */
    double width;           /* of the bracket two evaluations ago, and one ago */
    double last_width;
} bracket;

bracket bracket_make(double low, double at_low, double high, double at_high);

/* The place to be tried next: low + k * least with an integer k, and at least `least` away from
 * both ends. high - low must be at least 2 * least, and least above 0. */
double bracket_next(const bracket *b, double least);

/* A value for a number `found` that may be at most `wanted` > 0: ln(found / wanted), at most 0
 * where it fits and above 0 where it does not, as an exact comparison has it. */
double bracket_value(double found, double wanted);

/* The value at that place is `value`: one of the ends moves there. */
void bracket_put(bracket *b, double place, double value);

#endif
