/* curl_load.h - the functions of libcurl, loaded when they are needed. */
#ifndef DPI_CURL_LOAD_H
#define DPI_CURL_LOAD_H

#include <curl/curl.h>
#undef curl_easy_setopt /* macros that check types, for calls by name */
#undef curl_easy_getinfo
#undef curl_multi_setopt

typedef struct curl_library {
    void *handle;
    CURLcode (*global_init)(long);
    void (*global_cleanup)(void);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    const char *(*easy_strerror)(CURLcode);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned, int, int *);
    CURLMsg *(*multi_info_read)(CURLM *, int *);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
} curl_library;

/* CLI_OK, or CLI_FAILED with a message. */
int curl_load(curl_library *c);
void curl_unload(curl_library *c);

#endif
