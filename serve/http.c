/* http.c - see http.h. */
#include "serve/http.h"

#include <dlfcn.h>
#include <string.h>

#include "serve/refusal.h"

dpi_status http_load(http *h, dpi_error *err) {
    void *symbol;
    memset(h, 0, sizeof *h);
    h->library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!h->library)
        return fail_with(err, DPI_STATUS_UNSUPPORTED,
                         "cannot load libmicrohttpd (package libmicrohttpd12): %s", dlerror());
#define HTTP_FIND(name)                                                                            \
    symbol = dlsym(h->library, "MHD_" #name);                                                      \
    if (!symbol)                                                                                   \
        return fail_with(err, DPI_STATUS_UNSUPPORTED, "libmicrohttpd has no MHD_" #name);          \
    memcpy(&h->name, &symbol, sizeof symbol); /* C has no cast from data to a function */
    HTTP_CALLS(HTTP_FIND)
#undef HTTP_FIND
    return DPI_STATUS_OK;
}

void http_unload(http *h) {
    if (h->library)
        dlclose(h->library);
    h->library = NULL;
}
