/* Every kernel of one ISA against ref.c, on sizes that are odd on purpose; and its purity: a row's
 * bits do not depend on how many rows are computed with it. The checks are those of family_*.c. */
#include "tests/kernels/family.h"

static checker c; /* filled once, by setup */

void init_vnni_evex(dpi_kernels *k); /* vnni_evex.c */

static int setup(void **state) {
    (void)state;
    dpi_error err;
    assert_ok(dpi_kernels_init(&c.ref, DPI_ISA_REF, &err), &err);
    assert_ok(dpi_kernels_init(&c.isa, forced_isa(), &err), &err);
    c.seed = 1;
    return 0;
}

static void test_kernel(void **state) {
    const family_kernel *f = *state;
    f->check(f, &c);
}

/* vpdpbusd instead of two instructions: the same bits. */
static void test_vnni(void **state) {
    (void)state;
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

static void test_row_blocks(void **state) {
    (void)state;
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

static void test_isa_names(void **state) {
    (void)state;
    dpi_error err;
    int32_t id;
    assert_ok(dpi_isa_parse("avx2", &id, &err), &err);
    assert_int_equal(id, DPI_ISA_AVX2);
    assert_string_equal(dpi_isa_name(DPI_ISA_AVX512), "avx512");
    assert_error(dpi_isa_parse("sse9", &id, &err), DPI_STATUS_ARG, &err, "'sse9'");
    dpi_kernels k;
    assert_error(dpi_kernels_init(&k, 17, &err), DPI_STATUS_ARG, &err, "isa is 17");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isa_names),
        cmocka_unit_test(test_row_blocks),
        cmocka_unit_test(test_vnni),
#define KERNEL(name, parameters)                                                                  \
    {#name, test_kernel, NULL, NULL, (void *)(uintptr_t)&family_##name},
#include "kernels/kernels.def"
#undef KERNEL
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
