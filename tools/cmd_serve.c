/* cmd_serve.c - `dpinfer serve`: answers over HTTP. */
#include "tools/cmd_serve.h"

#include "tools/commands.h"

const command command_serve = {
    .name = "serve",
    .bit = CMD_SERVE,
    .arguments = "MODEL",
    .takes_model = 1,
    .run = serve_main,
    .summary = "answers over HTTP, in the form of the OpenAI API",
    .details =
        "Answers GET /health, /v1/models and /metrics, and POST /v1/chat/completions and\n"
        "/v1/completions, whole or as a stream of events. Answers have no privacy guarantee: a\n"
        "prompt is public. Requests that come at once share the passes of the model, and each\n"
        "has the text that it would have alone. The address is the first line on stdout.\n"
        "SIGTERM and SIGINT: what has begun is answered, what comes is refused, then it ends.\n"
        "docs/serve.md says what it protects against and what not.\n",
};
