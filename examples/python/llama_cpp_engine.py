"""Private text by dpinfer's sampler from the logits of llama.cpp.

    pip install dpinfer -r requirements-heavy.txt       # compiles llama.cpp: ten minutes
    python llama_cpp_engine.py MODEL.gguf [-B 8] [-n 40] [--epsilon 10] [--delta 1e-5] [--together]

Each record has a context and passes of its own; --together has all of them as sequences of one
context, which is faster and NOT PRIVATE where rows depend on each other (rows.py says why). The
script looks at that first. dpinfer.Model opens the same files, and promises independent rows.
"""

import ctypes
import sys
import weakref

import llama_cpp as c
import numpy as np
import rows


@c.llama_log_callback
def _log(level, text, user):
    """llama.cpp tells each tensor: its errors are enough."""
    if level == 4:  # GGML_LOG_LEVEL_ERROR
        sys.stderr.write(text.decode(errors="replace"))


c.llama_log_set(_log, ctypes.c_void_p())


class Engine:
    """A GGUF file and its vocabulary, as rows.py wants an engine; rows have room for `more` tokens.
    """

    def __init__(self, path, more):
        self._more = more
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
            return self.tokens(f"{rows.TASK}\n\n{answer}")
        out = ctypes.create_string_buffer(4096)
        message = c.llama_chat_message(role=b"user", content=rows.TASK.encode())
        n = c.llama_chat_apply_template(template, (c.llama_chat_message * 1)(message), 1, True,
                                        out, len(out))
        if n < 0:
            raise SystemExit("llama.cpp does not know the chat format of the model")
        return self.tokens(out.raw[:n].decode() + answer)

    def rows(self, prompts):
        return Rows(self, prompts, self._more)

    def is_end(self, token):
        return c.llama_vocab_is_eog(self.vocab, token) or b'"' in self.piece(token)

    def text(self, tokens):
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")


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


if __name__ == "__main__":
    rows.main(lambda asked: Engine(asked.model, asked.tokens), "context")
