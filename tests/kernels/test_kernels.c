/* Every kernel of one ISA against ref.c, on sizes that are odd on purpose; and its purity: a row's
 * bits do not depend on how many rows are computed with it. The checks are those of family_*.c. */
#include "tests/kernels/family.h"

static checker c; /* filled once, by setup */

void init_vnni_evex(dpi_kernels *k); /* vnni_evex.c */

SETUP {
    assert_ok(dpi_kernels_init(&c.ref, DPI_ISA_REF, ERR));
    assert_ok(dpi_kernels_init(&c.isa, forced_isa(), ERR));
    c.seed = 1;
}

TEST(test_every_kernel) {
    for (int32_t i = 0; family_at(i); i++) {
        print_message("%s\n", family_at(i)->name);
        family_at(i)->check(family_at(i), &c);
    }
}

/* vpdpbusd instead of two instructions: the same bits. */
TEST(test_vnni) {
#if defined(__x86_64__)
    if (c.isa.isa != DPI_ISA_AVX2 || dpi_isa_best() != DPI_ISA_AVX512)
        skip(); /* without AVX-512, the ISA itself has them if the processor does */
    dpi_kernels vnni = c.isa;
    checker both = c;
    init_vnni_evex(&vnni);
    dpi_kernels_init_avx2_q(&both.isa);
    both.twin = &vnni;
    for (int32_t i = 0; family_at(i); i++)
        if (family_at(i)->is_product && dpi_kernels_matmul_q(&vnni, family_at(i)->type))
            family_at(i)->check(family_at(i), &both);
#endif
}

TEST(test_row_blocks) {
    for (int32_t n = 1; n < 200; n++) {
        int32_t least = n, most = 0;
        for (int32_t first = 0, count; first < n; first += count) {
            count = dpi_row_block(n, first);
            assert_true(count >= 1 && count <= DPI_ROW_BLOCK && first + count <= n);
            for (int32_t r = first; r < first + count; r++)
                assert_int_equal(dpi_row_block_first(n, r), first);
            least = count < least ? count : least;
            most = count > most ? count : most;
        }
        assert_true(most - least <= 1);
    }
}

TEST(test_isa_names) {
    int32_t id;
    assert_ok(dpi_isa_parse("avx2", &id, ERR));
    assert_int_equal(id, DPI_ISA_AVX2);
    assert_string_equal(dpi_isa_name(DPI_ISA_AVX512), "avx512");
    assert_error(dpi_isa_parse("sse9", &id, ERR), ARG, "'sse9'");
    dpi_kernels k;
    assert_error(dpi_kernels_init(&k, 17, ERR), ARG, "isa is 17");
}
