/* The public header stands alone, and the library needs nothing but what it says: this program
 * links libdpinfer.a as a project outside would. */
#include "dpinfer.h"
#include "dpinfer/bench.h"

#include <stdio.h>
#include <string.h>

/* NAME_init of a struct without defaults: its size, and nothing in the last member. */
#define INIT_SETS(name, last)                                                                      \
    do {                                                                                           \
        name a;                                                                                    \
        memset(&a, 0x5a, sizeof a);                                                                \
        name##_init(&a);                                                                           \
        if (a.struct_size != sizeof a || a.last) {                                                 \
            printf("%s_init leaves something\n", #name);                                           \
            return 5;                                                                              \
        }                                                                                          \
    } while (0)

int main(void) {
    double rho = 0;
    dpi_error err;
    if (dpi_abi_version() != DPI_ABI_VERSION || strlen(dpi_version()) == 0)
        return 1;
    if (dpi_zcdp_rho(1.0, 1e-6, &rho, &err) != DPI_STATUS_OK || rho < 0.02435 || rho > 0.02436)
        return 2;
    if (dpi_zcdp_rho(-1.0, 1e-6, &rho, &err) != DPI_STATUS_ARG ||
        strcmp(dpi_status_name(err.code), "ARG") != 0)
        return 3;
    if (dpi_zcdp_rho(-1.0, 1e-6, &rho, NULL) != DPI_STATUS_ARG)
        return 4;
    INIT_SETS(dpi_machine, f32_ops_per_second);
    INIT_SETS(dpi_model_info, weight_types[0]);
    INIT_SETS(dpi_model_shape, tied_output);
    INIT_SETS(dpi_sampler_plan, svt_sensitivity);
    INIT_SETS(dpi_generate_input, n_prefix);
    INIT_SETS(dpi_generate_hooks, user);
    INIT_SETS(dpi_generate_result, ended);
    printf("[  PASSED  ] 1 test(s).\n");
    return 0;
}
