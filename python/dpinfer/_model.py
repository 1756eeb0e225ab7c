"""Models, tokenizers and sessions."""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._library import (
    FOLDER,
    ArgumentError,
    Handle,
    call,
    cancel,
    ffi,
    keep_error,
    lib,
    new,
    path_bytes,
    taken,
    text,
)
from ._options import NAMES, Table, encoded, flag, narrow, struct_dict, value_of

Floats = npt.NDArray[np.float32]
MODEL = Table(NAMES, model=("dpi_model_options", ""))
SESSION = Table(NAMES, session=("dpi_session_options", "n_kept"))
BUILTIN = FOLDER / "share" / "dpinfer" / "models" / "dpinfer-4m-q8_0.gguf"
_BOS = 1  # DPI_TOKENIZE_BOS


class Model(Handle):
    """A GGUF model. It does not change; any number of sessions and threads may use it at once.

    `info` has what the file says of itself (dpi_model_info), `path` where it is.
    Raises FileError, FormatError (with the offset), Unsupported, OutOfMemory.

    logits: a function that computes logits in place of the file's weights, for any other engine;
    everything works on it as on a model of ours (plan, run, ledger, report), which say so. It gets
    the tokens of one sequence, an array of int32 from its first on, and returns [n_vocab] numbers.
    The file is its vocabulary (as llama.cpp's ggml-vocab-*.gguf), `context` the most tokens of a
    sequence. THE GUARANTEE RESTS ON IT: the numbers follow from these tokens alone, to the bit.
    Engines that compute several sequences at once often change the bits of one with the others.
    """

    def __init__(self, path: Any, *, logits: Optional[Callable[[Any], Any]] = None,
                 **options: Any) -> None:
        keep: List[Any] = []
        structs = MODEL.new()
        for name in ("adapter", "control_vector"):
            if options.get(name) is not None:
                options[name] = os.fspath(options[name])
        MODEL.set(structs, options, keep)
        if logits is not None:
            keep.append(_engine(logits, lambda: int(self.info["n_vocab"])))
            structs["model"].logits = keep[-1]
        out = ffi.new("dpi_model **")
        call(lib.dpi_model_open, path_bytes(path), structs["model"], out)
        super().__init__(out[0], lib.dpi_model_close)
        self.path, self._keep = path, keep
        info = new("dpi_model_info")
        call(lib.dpi_model_info_get, self.c, info)
        self.info: Dict[str, Any] = struct_dict(info, "dpi_model_info")
        self.tokenizer = Tokenizer(self)

    @classmethod
    def builtin(cls, **options: Any) -> Model:
        """The small model of this package, which writes made-up hospital letters."""
        return cls(BUILTIN, **options)

    @property
    def metadata(self) -> Dict[str, str]:
        """Keys of the file and their values as text, long arrays shortened."""
        key, kind = ffi.new("char **"), ffi.new("char **")
        value = ffi.new("char[]", 1 << 16)
        found = {}
        for i in range(lib.dpi_model_metadata_count(self.c)):
            call(lib.dpi_model_metadata_get, self.c, i, key, kind, value, len(value))
            found[text(key[0])] = text(value)
        return found

    @property
    def tensors(self) -> Dict[str, Tuple[str, Tuple[int, ...]]]:
        """Name -> (type, shape), the columns first, as GGUF has them."""
        name, kind = ffi.new("char **"), ffi.new("char **")
        shape, at, size = ffi.new("int64_t[4]"), ffi.new("uint64_t *"), ffi.new("uint64_t *")
        found = {}
        for i in range(lib.dpi_model_tensor_count(self.c)):
            call(lib.dpi_model_tensor_get, self.c, i, name, kind, shape, at, size)
            found[text(name[0])] = (text(kind[0]), tuple(shape))
        return found

    def session(self, **options: Any) -> Session:
        """Session(self, **options)."""
        return Session(self, **options)

    def __repr__(self) -> str:
        if self._pointer is None:
            return "<Model, closed>"
        i = self.info
        return (f"<Model {i['name'] or self.path}: {i['architecture']}, "
                f"{i['n_params'] / 1e6:.0f} M parameters, {i['n_vocab']} tokens, "
                f"context {i['n_ctx_train']}>")


def _engine(function: Callable[[Any], Any], n_vocab: Callable[[], int]) -> Any:
    """A function of Python as a dpi_logits_fn. What it raises is raised by the call that asked."""

    def compute(user: Any, tokens: Any, n_tokens: int, logits: Any, err: Any) -> int:
        ids = np.frombuffer(ffi.buffer(tokens, 4 * n_tokens), np.int32).copy()
        row = as_logits(function(ids), "logits").reshape(-1)
        if len(row) != n_vocab():
            raise ArgumentError(f"logits: found {len(row)} numbers, allowed {n_vocab()}")
        np.frombuffer(ffi.buffer(logits, 4 * len(row)), np.float32)[:] = row
        return 0

    return ffi.callback(
        "dpi_status(void *, const int32_t *, int32_t, float *, dpi_error *)", compute,
        error=int(lib.DPI_STATUS_SYSTEM), onerror=keep_error)


_FLOAT = np.dtype(np.float32)


def as_logits(value: Any, what: str) -> Any:
    """Logits of numpy, torch, jax, or a list, as float32 in memory that C can read."""
    if type(value) is np.ndarray and value.dtype is _FLOAT:
        return value
    if hasattr(value, "detach"):  # torch: from its device, and from types that numpy has not
        value = value.detach().float().cpu().numpy()
    array = np.asarray(value)
    if array.dtype != np.float32:
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{what}: found {array.dtype}, allowed are numbers")
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    return array


def model_of(value: Any) -> Model:
    """A Model. Raises TypeError: it is none."""
    if not isinstance(value, Model):
        raise TypeError(f"model: found {type(value).__name__}, allowed a Model")
    return value


class Tokenizer:
    """Text to tokens and back, exactly as the model's file says."""

    def __init__(self, model: Model) -> None:
        self._model = weakref.ref(model)  # the model has its tokenizer

    def _c(self) -> Any:
        model = self._model()
        if model is None:
            raise ArgumentError("the model of this tokenizer is gone")
        return model.c

    def encode(self, text: Union[str, bytes], bos: bool = False) -> List[int]:
        """Tokens of a text. Special tokens in it are plain text. bos: begin as a document does,
        if the model wants that."""
        data = encoded("text", text)
        return _tokens(4 * len(data) + 5, lib.dpi_tokenize, self._c(), ffi.from_buffer(data),
                       len(data), _BOS if flag("bos", bos) else 0)

    def prompt(self, user: str, system: Optional[str] = None,
               turns: Sequence[Tuple[str, str]] = (), chat: str = "auto") -> List[int]:
        """A whole prompt in the model's chat format: an optional system message, earlier turns
        (user, answer), the user's message and the header of the answer."""
        keep = [encoded("user", user), encoded("system", "" if system is None else system)]
        made = ffi.new("dpi_turn[]", max(len(turns), 1))
        n_bytes = sum(map(len, keep))
        for i, (turn, pair) in enumerate(zip(made, turns)):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"turns[{i}]: found {type(pair).__name__}, allowed a pair of texts")
            for name, value in zip(("user", "answer"), pair):
                keep.append(encoded(f"turns.{name}", value))
                setattr(turn, name, ffi.from_buffer("char[]", keep[-1]))
                setattr(turn, "n_" + name, len(keep[-1]))
                n_bytes += len(keep[-1])
        room = 4 * n_bytes + int(lib.DPI_PROMPT_FRAME) + len(turns) * int(lib.DPI_EARLIER_FRAME)
        return _tokens(room, lib.dpi_turns_encode, self._c(), value_of("dpi_chat", "chat", chat),
                       ffi.from_buffer(keep[1]) if keep[1] else ffi.NULL, len(keep[1]), made,
                       len(turns), ffi.from_buffer(keep[0]), len(keep[0]))

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens; special ones give none."""
        out, piece, n = ffi.new("dpi_decoder **"), ffi.new("char **"), ffi.new("size_t *")
        call(lib.dpi_decoder_create, self._c(), out)
        decoder = ffi.gc(out[0], lib.dpi_decoder_free)
        parts = []
        for token in _ids(tokens):
            call(lib.dpi_decoder_push, decoder, token, piece, n)
            parts.append(ffi.buffer(piece[0], n[0])[:])
        lib.dpi_decoder_finish(decoder, piece, n)
        parts.append(ffi.buffer(piece[0], n[0])[:])
        return b"".join(parts).decode("utf-8")

    def show(self, tokens: Iterable[int]) -> str:
        """Tokens as people read them, special ones by their names."""
        ids = _ids(tokens)
        out = ffi.new("char **")
        call(lib.dpi_tokens_show, self._c(), ffi.from_buffer("int32_t[]", ids), len(ids), out)
        return taken(out[0], private=True)

    def find(self, text: str) -> Optional[int]:
        """The token that adds exactly this text; None: there is none."""
        data = encoded("text", text)
        found = lib.dpi_token_find(self._c(), ffi.from_buffer(data), len(data)) if data else -1
        return found if found >= 0 else None

    def is_end(self, token: int) -> bool:
        """Whether a token ends a text."""
        return bool(lib.dpi_token_is_eog(self._c(), narrow("token", "int32_t", token)))

    @property
    def bos(self) -> Optional[int]:
        """The token that begins a text; None: there is none."""
        found = lib.dpi_token_bos(self._c())
        return found if found >= 0 else None


def _ids(tokens: Iterable[int]) -> npt.NDArray[np.int32]:
    """Token ids as C has them. Raises TypeError, ArgumentError."""
    found = np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens))
    if found.size == 0:
        return np.empty(0, np.int32)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError("tokens: allowed is a list of whole numbers")
    if found.min() < -2**31 or found.max() >= 2**31:
        raise ArgumentError("tokens: found a number that is no token")
    return np.ascontiguousarray(found, np.int32)


def _tokens(room: int, function: Any, *args: Any) -> List[int]:
    out, n = np.empty(room, np.int32), ffi.new("size_t *")
    call(function, *args, ffi.from_buffer("int32_t[]", out), room, n)
    return [int(token) for token in out[:n[0]]]


class Session(Handle):
    """KV caches of several sequences over one model. Belongs to one thread at a time.

    PURITY: the logits of a sequence are a function of the weights, of the options but seq, threads
    and ctx, and of the tokens given to it; no other sequence and no thread changes a bit.
    """

    def __init__(self, model: Model, **options: Any) -> None:
        keep: List[Any] = []
        structs = SESSION.new()
        SESSION.set(structs, options, keep)
        structs["session"].cancel = cancel
        out = ffi.new("dpi_session **")
        call(lib.dpi_session_create, model_of(model).c, structs["session"], out)
        super().__init__(out[0], lib.dpi_session_free, model)
        self.model = model
        self._n_vocab, self._n_embd = model.info["n_vocab"], model.info["n_embd"]

    def _at(self, name: str, value: Any) -> int:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name}: found {type(value).__name__}, allowed a whole number")
        if not -2**31 <= value < 2**31:
            raise ArgumentError(f"{name}: found {value}, which is out of range")
        return int(value)

    def prefill(self, tokens: Iterable[int], seq: int = 0,
                all_logits: bool = False) -> Optional[Floats]:
        """Appends tokens to a sequence. With all_logits: what comes after each, [n, n_vocab].

        Raises LimitError (the context is full: nothing is appended)."""
        ids, where = _ids(tokens), self._at("seq", seq)
        out = np.empty((len(ids), self._n_vocab), np.float32) if all_logits else None
        with self._using():
            call(lib.dpi_session_prefill, self.c, where, ffi.from_buffer("int32_t[]", ids),
                 len(ids), ffi.NULL if out is None else ffi.from_buffer("float[]", out))
        return out

    def step(self, tokens: Iterable[int], seqs: Optional[Iterable[int]] = None) -> None:
        """One token for each of several sequences (0, 1, ... if none are given), in one pass."""
        ids = _ids(tokens)
        where = _ids(range(len(ids)) if seqs is None else seqs)
        if len(ids) != len(where):
            raise ArgumentError(f"step: found {len(ids)} tokens and {len(where)} sequences")
        with self._using():
            call(lib.dpi_session_step, self.c, len(ids), ffi.from_buffer("int32_t[]", where),
                 ffi.from_buffer("int32_t[]", ids))

    def logits(self, seq: int = 0) -> Floats:
        """[n_vocab] after the last token of a sequence: a copy. Raises ArgumentError: it has none.
        """
        where = self._at("seq", seq)
        with self._using():
            at = lib.dpi_session_logits(self.c, where)
            if at == ffi.NULL:
                raise ArgumentError(f"seq: found {where}, which has no logits")
            copy: Floats = np.frombuffer(ffi.buffer(at, 4 * self._n_vocab), np.float32).copy()
        return copy

    def features(self, seq: int = 0) -> Floats:
        """[n_embd] the last hidden state after a prefill of this sequence, normalised."""
        where, out = self._at("seq", seq), np.empty(self._n_embd, np.float32)
        with self._using():
            call(lib.dpi_session_features, self.c, where, ffi.from_buffer("float[]", out))
        return out

    def steer(self, set: int, seq: int = 0) -> None:
        """Which set of the model's control vector (info["n_control_sets"], one for each label)
        steers an empty sequence, and its forks. The session has steers=True."""
        where, which = self._at("seq", seq), self._at("set", set)
        with self._using():
            call(lib.dpi_session_steer, self.c, where, which)

    def fork(self, source: int, to: int, n_tokens: Optional[int] = None) -> None:
        """Sequence `to` becomes the first n_tokens (all) tokens of `source`, computed once."""
        a, b = self._at("source", source), self._at("to", to)
        with self._using():
            n = lib.dpi_session_length(self.c, a) if n_tokens is None else self._at("n_tokens",
                                                                                   n_tokens)
            call(lib.dpi_session_fork, self.c, a, b, n)

    def reset(self, seq: int = 0) -> None:
        """Empties a sequence and wipes its cache."""
        where = self._at("seq", seq)
        with self._using():
            if lib.dpi_session_length(self.c, where) < 0:
                raise ArgumentError(f"seq: found {where}, which the session does not have")
            lib.dpi_session_reset(self.c, where)

    def length(self, seq: int = 0) -> int:
        """Tokens that a sequence holds."""
        where = self._at("seq", seq)
        with self._using():
            n = int(lib.dpi_session_length(self.c, where))
        if n < 0:
            raise ArgumentError(f"seq: found {where}, which the session does not have")
        return n

    @property
    def isa(self) -> str:
        """The instruction set that it computes with."""
        return text(lib.dpi_isa_name(lib.dpi_session_isa(self.c)))


SESSION.document(Session.__init__)
MODEL.document(Model.__init__)
