"""Private text by dpinfer's sampler from the logits of llama.cpp.

    pip install dpinfer -r requirements-heavy.txt       # compiles llama.cpp: ten minutes
    python llama_cpp_engine.py MODEL.gguf [-B 8] [-n 40] [--epsilon 10] [--delta 1e-5] [--together]

Each record has a context and passes of its own; --together has all of them as sequences of one
context, which is faster and NOT PRIVATE where rows depend on each other (rows.py says why). The
script looks at that first. dpinfer.Model opens the same files, and promises independent rows.
"""

import argparse
import ctypes
import time
import weakref

import dpinfer
import llama_cpp as c
import numpy as np
from rows import (
    OPENING,
    TASK,
    OneByOne,
    answer_of,
    draw,
    largest_change,
    records,
    say_change,
    say_private,
)


class Model:
    """A GGUF file and its vocabulary."""

    def __init__(self, path):
        self.c = c.llama_model_load_from_file(path.encode(), c.llama_model_default_params())
        if not self.c:
            raise SystemExit(f"{path}: llama.cpp does not open it")
        self.vocab = c.llama_model_get_vocab(self.c)
        self.n_vocab = c.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text):
        """Tokens of a text in which special tokens stand by their names."""
        data = text.encode()
        out = (c.llama_token * (len(data) + 8))()
        n = c.llama_tokenize(self.vocab, data, len(data), out, len(out), True, True)
        return list(out[:n])

    def piece(self, token):
        """The bytes of a token; special ones have none."""
        out = ctypes.create_string_buffer(256)
        n = c.llama_token_to_piece(self.vocab, token, out, len(out), 0, False)
        return out.raw[:max(n, 0)]

    def prompt(self, answer):
        """The task, and how the answer begins; in the model's chat format, if it has one."""
        template = c.llama_model_chat_template(self.c, None)
        if template is None:
            return self.tokens(f"{TASK}\n\n{answer}")
        out = ctypes.create_string_buffer(4096)
        message = c.llama_chat_message(role=b"user", content=TASK.encode())
        n = c.llama_chat_apply_template(template, (c.llama_chat_message * 1)(message), 1, True,
                                        out, len(out))
        if n < 0:
            raise SystemExit("llama.cpp does not know the chat format of the model")
        return self.tokens(out.raw[:n].decode() + answer)


class Rows:
    """Prompts as sequences of one context, with room for `more` tokens of each."""

    def __init__(self, model, prompts, more):
        n_tokens = sum(map(len, prompts))
        options = c.llama_context_default_params()
        options.n_ctx = n_tokens + more * len(prompts)
        options.n_batch = options.n_ubatch = n_tokens
        options.n_seq_max = len(prompts)
        options.kv_unified = True  # sequences share n_ctx
        self._model = model
        self._context = c.llama_init_from_model(model.c, options)
        if not self._context:
            raise SystemExit("llama.cpp has no context for these prompts")
        self._batch = c.llama_batch_init(n_tokens, 0, 1)
        weakref.finalize(self, c.llama_batch_free, self._batch)
        weakref.finalize(self, c.llama_free, self._context)
        self._lengths = [0] * len(prompts)
        self._decode(prompts)

    def _decode(self, lists):
        """Appends a list of tokens to each sequence, in one pass."""
        batch, n, ends = self._batch, 0, []
        for row, tokens in enumerate(lists):
            for token in tokens:
                batch.token[n], batch.pos[n] = token, self._lengths[row]
                batch.n_seq_id[n], batch.seq_id[n][0] = 1, row
                batch.logits[n] = 0
                self._lengths[row] += 1
                n += 1
            batch.logits[n - 1] = 1
            ends.append(n - 1)
        batch.n_tokens = n
        code = c.llama_decode(self._context, batch)
        if code != 0:
            raise SystemExit(f"llama.cpp: llama_decode ends with {code}")
        self.logits = np.stack([
            np.ctypeslib.as_array(c.llama_get_logits_ith(self._context, end),
                                  (self._model.n_vocab,)).copy() for end in ends])

    def append(self, token):
        self._decode([[token]] * len(self._lengths))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("-B", "--batch", type=int, default=8)
    parser.add_argument("-n", "--tokens", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=10)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--together", action="store_true", help="NOT PRIVATE: one context")
    asked = parser.parse_args()

    model = Model(asked.model)
    texts = records(2 * asked.batch)
    prompts = [model.prompt(answer_of(text)) for text in texts]
    private, others = prompts[:asked.batch], prompts[asked.batch + 1:]
    public = model.prompt(OPENING)

    def rows(prompts):
        return Rows(model, prompts, asked.tokens)

    say_change(largest_change(rows, private, others, token=public[-1]))

    # The public prompt has a context of its own in any case.
    sampler = dpinfer.Sampler(vocab=model.n_vocab, references=asked.batch, epsilon=asked.epsilon,
                              delta=asked.delta, tokens=asked.tokens, tau=0.8, top_k=50)
    began = time.monotonic()
    held = rows(private) if asked.together else OneByOne(rows, private)

    def is_end(token):
        return c.llama_vocab_is_eog(model.vocab, token) or b'"' in model.piece(token)

    tokens = draw(sampler, rows([public]), held, is_end)
    print(b"".join(map(model.piece, tokens)).decode("utf-8", "replace").strip())
    say_private(sampler, not asked.together)
    print(f"{len(tokens)} tokens from {asked.batch} records, "
          f"{time.monotonic() - began:.1f} s with their prompts")


if __name__ == "__main__":
    main()
