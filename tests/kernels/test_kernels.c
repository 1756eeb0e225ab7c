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

#if defined(VNNI_EVEX) || defined(__aarch64__)
static void compare_products(const dpi_kernels *isa, const dpi_kernels *twin) {
    checker both = c;
    both.isa = *isa, both.twin = twin;
    for (int32_t i = 0; family_at(i); i++)
        if (family_at(i)->is_product && dpi_kernels_matmul_q(twin, family_at(i)->type))
            family_at(i)->check(family_at(i), &both);
}

/* One instruction for dot products instead of two or three: the same bits. */
TEST(test_dot_products) {
    dpi_kernels twin = c.isa;
#ifdef VNNI_EVEX
    if (c.isa.isa != DPI_ISA_AVX2 || !dpi_isa_runs(DPI_ISA_AVX512))
        skip(); /* without AVX-512, the ISA itself has them if the processor does */
    dpi_kernels plain = c.isa;
    init_vnni_evex(&twin);
    dpi_kernels_init_avx2_q(&plain);
    compare_products(&plain, &twin);
#else
    if (c.isa.isa == DPI_ISA_REF || c.isa.isa == DPI_ISA_NEON)
        skip(); /* the definition has sums of its own, and NEON is the twin */
    dpi_kernels_init_neon_q(&twin);
#endif
    compare_products(&c.isa, &twin);
}
#endif

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

/* Each that runs comes once, the plainest first, and has the kernels of its name; the others are
 * refused. */
TEST(test_isas) {
    int32_t seen[8], n = 0;
    dpi_kernels k;
    for (int32_t isa = dpi_isa_next(DPI_ISA_AUTO); isa != DPI_ISA_AUTO; isa = dpi_isa_next(isa)) {
        assert_in_range(n, 0, 7);
        seen[n++] = isa;
        assert_true(dpi_isa_runs(isa));
        assert_ok(dpi_kernels_init(&k, isa, ERR));
        assert_int_equal(k.isa, isa);
    }
    assert_int_equal(seen[0], DPI_ISA_REF);
    assert_int_equal(seen[n - 1], dpi_isa_best());
    for (int32_t isa = DPI_ISA_AUTO + 1; isa <= DPI_ISA_I8MM; isa++) {
        bool runs = false;
        for (int32_t i = 0; i < n; i++)
            runs = runs || seen[i] == isa;
        assert_int_equal(dpi_isa_runs(isa), runs);
        if (!runs)
            assert_error(dpi_kernels_init(&k, isa, ERR), UNSUPPORTED, dpi_isa_name(isa));
    }
    assert_ok(dpi_kernels_init(&k, DPI_ISA_AUTO, ERR));
    assert_int_equal(k.isa, dpi_isa_best());
}

TEST(test_isa_names) {
    int32_t id;
    assert_ok(dpi_isa_parse("avx2", &id, ERR));
    assert_int_equal(id, DPI_ISA_AVX2);
    assert_string_equal(dpi_isa_name(DPI_ISA_AVX512), "avx512");
    assert_error(dpi_isa_parse("sse9", &id, ERR), ARG,
                 "'sse9', must be auto, ref, avx2, avx512, neon, dotprod or i8mm");
    dpi_kernels k;
    assert_error(dpi_kernels_init(&k, 17, ERR), ARG, "isa is 17, must be a dpi_isa (0..6)");
}
