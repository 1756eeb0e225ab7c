"""The sampler: logits of any engine in, one private token out; and what budgets mean."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from ._library import ArgumentError, BudgetExceeded, Handle, call, failure, ffi, lib
from ._model import as_logits
from ._options import NAMES, Table, struct_dict

SAMPLER = Table({**NAMES, "n_ref": "references"}, method=("dpi_sampler_options", ""))


def _address(array: Any) -> int:
    """Where the numbers of a contiguous array are: array.ctypes takes several times as long."""
    return int(ffi.cast("uintptr_t", ffi.from_buffer(array)))


class Sampler(Handle):
    """Draws the tokens of a text from the public and the private logits of any engine.

    One text is begin(), then step() for each token, at most `tokens` of them, which share the
    budget (epsilon at delta, or rho in zCDP). `plan` says what the budget comes to. The references
    of two texts must be different records; else their costs add up.

    The guarantee rests on what you give: the public logits depend on no record, and row i of the
    private logits on no record but i. Engines that compute several rows at once often change the
    bits of one row with the others (other kernels for other batch sizes): then a record changes
    the rows of others. Compute one row at a time, or use dpinfer.Session, whose rows are pure.
    """

    def __init__(self, vocab: int, references: int, **options: Any) -> None:
        keep: List[Any] = []
        structs = SAMPLER.new()
        values = {"vocab": vocab, "references": references, **options}
        SAMPLER.set(structs, values, keep)
        o = structs["method"]
        out = ffi.new("dpi_sampler **")
        call(lib.dpi_sampler_create, o, out)
        super().__init__(out[0], lib.dpi_sampler_free)
        self._n_vocab = int(o.n_vocab)
        self._n_rows = int(o.n_ref) * max(int(o.max_per_unit), 1)
        self._rows = np.zeros(max(self._n_rows, 1), np.uintp)
        self._c_rows = ffi.cast("float **", self._rows.ctypes.data)
        self._steps = np.arange(self._n_rows, dtype=np.uintp) * np.uintp(4 * self._n_vocab)
        self._token = ffi.new("int32_t *")
        self._err = ffi.new("dpi_error *")
        self.begin()

    def begin(self) -> None:
        """The next text, with other references and the whole budget."""
        with self._using():
            call(lib.dpi_sampler_begin, self.c)

    def _point(self, private: Any) -> Any:
        """Rows of the private logits: [references, vocab], or a list with None for a null slot.
        Returns what must live until the call is over."""
        if private is None:
            if self._n_rows:
                raise ArgumentError(f"private_logits: found None, allowed {self._n_rows} rows")
            return None
        if not isinstance(private, (list, tuple)):
            array = as_logits(private, "private_logits")
            if array.shape != (self._n_rows, self._n_vocab):
                raise ArgumentError(f"private_logits: found shape {array.shape}, allowed "
                                    f"{(self._n_rows, self._n_vocab)}")
            if not array.flags.c_contiguous:
                array = np.ascontiguousarray(array)
            if self._n_rows:
                np.add(self._steps, np.uintp(_address(array)), out=self._rows)
            return array
        if len(private) != self._n_rows:
            raise ArgumentError(f"private_logits: found {len(private)} rows, allowed "
                                f"{self._n_rows}")
        rows = []
        for i, row in enumerate(private):
            if row is None:
                self._rows[i] = 0
                continue
            rows.append(self._row(row, f"private_logits[{i}]"))
            self._rows[i] = _address(rows[-1])
        return rows

    def _row(self, value: Any, what: str) -> Any:
        array = as_logits(value, what)
        if array.shape != (self._n_vocab,):
            raise ArgumentError(f"{what}: found shape {array.shape}, allowed {(self._n_vocab,)}")
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def step(self, public_logits: Any,
             private_logits: Union[Any, Sequence[Optional[Any]], None] = None) -> int:
        """Draws the next token. public_logits [vocab]; private_logits [references, vocab], or a
        list of rows with None for a null slot.

        Raises BudgetExceeded (all tokens of the text are drawn), NumericError (a public logit is
        not finite), EntropyError. No token is drawn then."""
        public = self._row(public_logits, "public_logits")
        with self._using():
            keep = self._point(private_logits)
            status = lib.dpi_sampler_step(self.c, ffi.from_buffer("float[]", public),
                                          self._c_rows, self._token, self._err)
            del keep
            if status != 0:
                raise failure(status, self._err)
            return int(self._token[0])

    def allow(self, tokens: Optional[Sequence[int]]) -> None:
        """Only these tokens may come next, a function of public data; None: all."""
        if tokens is None:
            bits = None
        else:
            flags = np.zeros((self._n_vocab + 63) // 64 * 64, np.uint8)
            ids = np.asarray(list(tokens))
            if ids.size == 0 or ids.dtype.kind not in "iu" or not (
                    ids.min() >= 0 and ids.max() < self._n_vocab):
                raise ArgumentError(f"tokens: allowed are ids of 0..{self._n_vocab - 1}, at least "
                                    "one")
            flags[ids] = 1
            bits = np.packbits(flags, bitorder="little")
        with self._using():
            call(lib.dpi_sampler_allow, self.c,
                 ffi.NULL if bits is None else ffi.from_buffer("uint64_t[]", bits))

    @property
    def plan(self) -> Dict[str, Any]:
        """What the budget comes to (dpi_sampler_plan): clip bound, eta, rho, epsilon, ..."""
        return struct_dict(lib.dpi_sampler_plan_get(self.c), "dpi_sampler_plan")

    @property
    def tokens_left(self) -> int:
        """Tokens that this text may still have."""
        return int(lib.dpi_sampler_tokens_left(self.c))

    @property
    def private_tokens(self) -> int:
        """Tokens of this text so far whose draw was private; the others were free."""
        return int(lib.dpi_sampler_n_private(self.c))

    @property
    def needs_references(self) -> bool:
        """False: all tokens that are left come from the public logits alone."""
        return bool(lib.dpi_sampler_needs_references(self.c))


SAMPLER.document(Sampler.__init__)
__all__ = ["BudgetExceeded", "Sampler"]
