/* curl_load.c - see curl_load.h. The library's calls for OpenSSL and for GnuTLS are the same. */
#include "tools/remote/curl_load.h"

#include <dlfcn.h>
#include <string.h>

#include "tools/terminal/cli.h"

static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static bool find(const curl_library *c, const char *name, void *function) {
    void *symbol = dlsym(c->handle, name);
    if (symbol)
        memcpy(function, &symbol, sizeof symbol); /* C has no cast from data to a function */
    return symbol != NULL;
}

static bool find_all(curl_library *c) {
    return find(c, "curl_global_init", &c->global_init) &&
           find(c, "curl_global_cleanup", &c->global_cleanup) &&
           find(c, "curl_easy_init", &c->easy_init) &&
           find(c, "curl_easy_cleanup", &c->easy_cleanup) &&
           find(c, "curl_easy_setopt", &c->easy_setopt) &&
           find(c, "curl_easy_getinfo", &c->easy_getinfo) &&
           find(c, "curl_easy_strerror", &c->easy_strerror) &&
           find(c, "curl_multi_init", &c->multi_init) &&
           find(c, "curl_multi_cleanup", &c->multi_cleanup) &&
           find(c, "curl_multi_add_handle", &c->multi_add_handle) &&
           find(c, "curl_multi_remove_handle", &c->multi_remove_handle) &&
           find(c, "curl_multi_perform", &c->multi_perform) &&
           find(c, "curl_multi_poll", &c->multi_poll) &&
           find(c, "curl_multi_info_read", &c->multi_info_read) &&
           find(c, "curl_slist_append", &c->slist_append) &&
           find(c, "curl_slist_free_all", &c->slist_free_all);
}

int curl_load(curl_library *c) {
    *c = (curl_library){0};
    for (size_t i = 0; !c->handle && i < sizeof libraries / sizeof *libraries; i++)
        c->handle = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!c->handle) {
        const char *reason = dlerror();
        return cli_fail(CLI_FAILED, "cannot load libcurl, which talks to the server: %s",
                        reason ? reason : libraries[0]);
    }
    if (find_all(c) && c->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return CLI_OK;
    dlclose(c->handle);
    c->handle = NULL;
    return cli_fail(CLI_FAILED, "libcurl cannot be used: it is too old, or does not begin");
}

void curl_unload(curl_library *c) {
    if (!c->handle)
        return;
    c->global_cleanup();
    dlclose(c->handle);
    c->handle = NULL;
}
