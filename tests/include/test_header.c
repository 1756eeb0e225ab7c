/* The public header stands alone, in C and (test_header_cxx) in C++, and the library needs nothing
 * but what it says: this program links libdpinfer.a as a stranger would. */
#include "dpinfer.h"

#include <stdio.h>
#include <string.h>

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
    printf("[  PASSED  ] 1 test(s).\n");
    return 0;
}
