/* refusal.h - why a request is not answered, as HTTP says it. */
#ifndef DPI_SERVE_REFUSAL_H
#define DPI_SERVE_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "dpinfer/status.h"

typedef struct refusal {
    int http;          /* the status code: 400, 401, 403, 404, 413, 500, 503, ...; 0: none */
    int retry_after;   /* 503: seconds; 0: not said */
    const char *type;  /* "invalid_request_error"; static */
    const char *param; /* the field that is wrong; static; NULL: none */
    const char *code;  /* "invalid_api_key": what a program may act on; static; NULL: none */
    const char *allow; /* 405: the methods of the path; static */
    bool is_final;     /* no client should send it again by itself */
    bool has_budget;   /* a budget does not allow it: what is left, and what it would cost */
    double left, cost; /* Renyi divergences of that order */
    int order;
    char message[512]; /* UTF-8 or not: it is cleaned where it is sent */
} refusal;

/* Fills in *r, with the type that goes with the code. Returns false. */
bool refuse(refusal *r, int http, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* 403, privacy_budget_exceeded. */
bool refuse_budget(refusal *r, double left, double cost, int order, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for an error of the library. */
bool refuse_error(refusal *r, const dpi_error *err);
/* Of a request that is charged: OpenAI's clients send again what has failed with 409 and from 500
 * on, and are told not to. */
void refusal_is_final(refusal *r);

/* An error in the form of the library's. Returns `code`. */
dpi_status fail_with(dpi_error *err, dpi_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
