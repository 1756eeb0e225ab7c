/* attack_support.h - what tests of attacks on perturbed words share. */
#ifndef DPI_ATTACK_SUPPORT_H
#define DPI_ATTACK_SUPPORT_H

#include "audit/attack/attack.h"
#include "tests/pipeline/perturb/perturb_support.h"

/* An attack on so many copies of a text, and what came of it. The caller frees the attack. NULL:
 * default options, no synonyms. */
static inline dpi_attack *attack(const dpi_vocabulary *v, const dpi_attack_options *options,
                                 const char *text, int times, const char *synonyms,
                                 dpi_perturb_options o, dpi_attack_result *r) {
    dpi_attack_options defaults;
    dpi_attack *a;
    dpi_attack_options_init(&defaults);
    assert_ok(dpi_attack_create(v, options ? options : &defaults, &a, ERR));
    for (int i = 0; i < times; i++)
        assert_ok(dpi_attack_add(a, text, strlen(text), ERR));
    if (synonyms)
        assert_ok(dpi_attack_synonyms(a, synonyms, strlen(synonyms), ERR));
    dpi_attack_result_init(r);
    assert_ok(dpi_attack_run(a, &o, r, ERR));
    return a;
}

#endif
