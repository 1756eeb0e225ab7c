/* cmd_serve.c - `dpinfer serve`: answers over HTTP. */
#include "tools/serve/serve_main.h"

#include "tools/command/commands.h"

const command command_serve = {
    .name = "serve",
    .bit = CMD_SERVE,
    .arguments = "MODEL",
    .takes_model = 1,
    .run = serve_main,
    .summary = "answers over HTTP, in the form of the OpenAI API",
    .details =
        "Answers GET /health, /v1/models and /metrics, and POST /v1/chat/completions and\n"
        "/v1/completions, whole or as a stream of events. Requests that come at once share the\n"
        "passes of the model, and each has the text that it would have alone. The address is the\n"
        "first line on stdout.\n"
        "With --dataset a request may name it and an epsilon: the answer is then about its\n"
        "records, with a privacy guarantee, and charged to --ledger before a record is read. Such\n"
        "a request is refused once the budget is spent. POST /v1/privacy/plan says what one would\n"
        "cost, GET /v1/privacy/budget what is left, GET /v1/privacy/reports/ID has the report of\n"
        "an answer, GET / a page for people. Other answers have no guarantee: a prompt is public.\n"
        "SIGTERM and SIGINT: what has begun is answered, what comes is refused, then it ends.\n"
        "docs/serve.md says what it protects against and what not.\n",
};
