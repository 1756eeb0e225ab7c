/* dpinfer.h - the public interface of libdpinfer: all of its topics, each in a header of its own.
 *
 * dpinfer writes text about sensitive documents that tells provably little about any one of them.
 * A GGUF LLaMA model is loaded into a dpi_model, which does not change. A dpi_session holds one KV
 * cache per sequence (the public prompt, and one per reference) and computes next-token logits. A
 * dpi_sampler makes one token of the B+1 logit vectors of a step, by an exact differentially
 * private mechanism, and counts what it spends.
 *
 *     dpi_model (shared, read-only) -> dpi_session (one per thread) -> logits [B+1, n_vocab]
 *     logits -> dpi_sampler -> token -> dpi_decoder -> UTF-8 text
 *
 * The sampler and the accounting functions need no model: any engine can feed them.
 *
 * CONVENTIONS
 * - Every function that can fail returns a dpi_status, which must be checked. The last
 *   argument is a caller-owned dpi_error that is filled in on failure; it may be NULL.
 *   On failure no output argument is changed, unless the function says otherwise.
 * - The library never aborts, exits, prints, reads the environment, installs signal handlers,
 *   looks at the locale (numbers have a point) or keeps global state. Error messages never hold a
 *   prompt, a reference document, the name of one, or a logit that was computed from one.
 * - Option structs begin with `struct_size`. Fill them with their `_init`, then change what you
 *   need. A struct of an older header is shorter: what it lacks has its default. One of a newer
 *   header is refused.
 * - Matrices are row-major, shapes are written [rows, columns]. Texts are UTF-8 with an
 *   explicit length in bytes and need no terminating NUL, unless they are called a "string".
 * - Threads: a dpi_model may be used by any number of threads at once. Every other object
 *   belongs to one thread at a time.
 */
#ifndef DPINFER_H
#define DPINFER_H

#include "dpinfer/account.h"
#include "dpinfer/batch.h"
#include "dpinfer/bounds.h"
#include "dpinfer/drawing.h"
#include "dpinfer/generation.h"
#include "dpinfer/grammar.h"
#include "dpinfer/isa.h"
#include "dpinfer/json.h"
#include "dpinfer/kmeans.h"
#include "dpinfer/memory.h"
#include "dpinfer/method.h"
#include "dpinfer/model.h"
#include "dpinfer/pace.h"
#include "dpinfer/process.h"
#include "dpinfer/prompts.h"
#include "dpinfer/registry.h"
#include "dpinfer/run.h"
#include "dpinfer/session.h"
#include "dpinfer/status.h"
#include "dpinfer/text.h"
#include "dpinfer/textfile.h"
#include "dpinfer/wording.h"
#include "dpinfer/write.h"

#endif
