"""Claims and reports: what was done with records, and what that guarantees."""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any, Dict, List, Optional

from ._library import (
    ArgumentError,
    FileError,
    Handle,
    Unsupported,
    call,
    ffi,
    lib,
    new,
    path_bytes,
    taken,
    text,
)
from ._options import encoded, flag, string, value_of
from ._show import lines, page


class Claim:
    """What was done with records, and what that guarantees, as the library settled it.

    epsilon, delta, rho: upper bounds, with secret random bits; epsilon is None where there is none.
    is_private: whether the guarantee holds: with a seed it does not. str() is the statement.
    """

    def __init__(self, struct: Any, owner: Any = None) -> None:
        self._c = struct
        self._owner = owner

    @classmethod
    def read(cls, data: str) -> Claim:
        """From to_json(): a claim from anywhere, settled anew. Raises FormatError, ArgumentError,
        Unsupported, BudgetExceeded (no work can have been done so)."""
        made = new("dpi_claim")
        raw = encoded("claim", data)
        call(lib.dpi_claim_read, ffi.from_buffer(raw), len(raw), made)
        return cls(made)

    @property
    def epsilon(self) -> Optional[float]:
        return float(self._c.epsilon) if self._c.epsilon != float("inf") else None

    @property
    def delta(self) -> float:
        return float(self._c.delta)

    @property
    def rho(self) -> Optional[float]:
        return float(self._c.rho) or None

    @property
    def is_private(self) -> bool:
        return bool(lib.dpi_claim_is_private(self._c))

    @property
    def guarantee(self) -> str:
        """In one line, rounded up."""
        return _sized(lib.dpi_claim_guarantee, self._c)

    @property
    def label(self) -> str:
        """ "PRIVATE", or "NOT PRIVATE: " and why."""
        return _sized(lib.dpi_claim_label, self._c)

    @property
    def short(self) -> str:
        """The guarantee if it holds, else why there is none."""
        return self.guarantee if self.is_private else self.label

    def statement(self, complete: bool = True) -> str:
        """Everything that the guarantee rests on, as lines of text."""
        out = ffi.new("char **")
        call(lib.dpi_claim_statement, self._c, flag("complete", complete), out)
        return taken(out[0])

    def to_json(self) -> str:
        """Without what follows from it; read() makes the same claim of it."""
        out = ffi.new("char **")
        call(lib.dpi_claim_write, self._c, out)
        return taken(out[0])

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict, with what follows: epsilon, delta and rho, and whether they hold."""
        return {**json.loads(self.to_json()),
                "follows": {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho,
                            "label": self.label}}

    def dp_event(self) -> Any:
        """The cost as an event of dp_accounting, which must be installed: never less than it is.
        Raises Unsupported (what cannot be counted so)."""
        from dp_accounting import dp_event as de

        cost = new("dpi_cost")
        call(lib.dpi_claim_cost, self._c, cost)
        events = []
        for part in cost.parts[0:cost.n_parts]:
            one = _event(de, part)
            events.append(de.SelfComposedDpEvent(one, part.n) if part.n > 1 else one)
        whole = events[0] if len(events) == 1 else de.ComposedDpEvent(events)
        if cost.subsample > 0 or cost.allocation > 0:
            raise Unsupported("dp_accounting has no event for secret assignment to batches; "
                              "epsilon and delta of the claim count it")
        return whole

    def __str__(self) -> str:
        return self.statement()

    def __repr__(self) -> str:
        return f"<Claim: {self.short}>"

    def _repr_html_(self) -> str:
        return lines(self.statement())


def _event(de: Any, part: Any) -> Any:
    """Of one mechanism: in zCDP RANGE counts as eta^2 / 8, PURE as epsilon tanh(epsilon / 2), which
    accountants take for each relation of neighbours."""
    if part.kind == lib.DPI_COST_GAUSSIAN:
        noise = de.GaussianDpEvent(part.x)
        return noise if part.q == 1 else de.PoissonSampledDpEvent(part.q, noise)
    rho = {lib.DPI_COST_ZCDP: part.x, lib.DPI_COST_RANGE: part.x**2 / 8 * (1 + 1e-15),
           lib.DPI_COST_PURE: part.x * math.tanh(part.x / 2) * (1 + 1e-15)}
    if part.kind not in rho:
        raise Unsupported("dp_accounting has no event for an epsilon with a delta; those of the "
                          "claim count it")
    return de.ZCDpEvent(rho[part.kind])


def _sized(function: Any, *args: Any) -> str:
    buffer = ffi.new("char[]", 512)
    function(*args, buffer, len(buffer))
    return text(buffer)


class Verification:
    """What follows from a report's parameters, computed a second time.

    ok: nothing is wrong. fields: a list of dicts (path, recorded, computed, verdict: ok, given or
    wrong).
    """

    def __init__(self, struct: Any) -> None:
        self.fields: List[Dict[str, Any]] = [
            struct_dict_of(struct.fields[i]) for i in range(struct.n_fields)]
        self.wrong = [f for f in self.fields if f["verdict"] == "wrong"]
        self.label = text(struct.label)
        self.is_private = bool(struct.is_private)
        self.model_hashed = bool(struct.model_hashed)
        self.output_hashed = bool(struct.output_hashed)

    @property
    def ok(self) -> bool:
        return not self.wrong

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        n = sum(f["verdict"] == "ok" for f in self.fields)
        return (f"<Verification: {n} fields follow, {len(self.wrong)} are wrong; {self.label}>")


def struct_dict_of(field: Any) -> Dict[str, Any]:
    return {"path": text(field.path), "recorded": text(field.recorded),
            "computed": text(field.computed),
            "verdict": ("ok", "given", "wrong")[field.verdict]}


class Report(Handle):
    """The privacy report of a piece of work; or one that was read, of which nothing is trusted."""

    def __init__(self, pointer: Any, source: Optional[str] = None, complete: bool = True) -> None:
        super().__init__(pointer, lib.dpi_report_free)
        self._source = source
        self._complete = complete

    @classmethod
    def parse(cls, data: str, name: str = "the report") -> Report:
        """From its JSON. Raises FormatError, LimitError."""
        raw = encoded("report", data)
        out = ffi.new("dpi_report **")
        call(lib.dpi_report_parse, string("name", name, []), ffi.from_buffer(raw), len(raw), out)
        return cls(out[0], source=data)

    @classmethod
    def load(cls, path: Any) -> Report:
        """From a file of JSON. Raises FileError, FormatError, LimitError."""
        try:
            raw = pathlib.Path(path).read_bytes()
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(path)!r}: {error}") from None
        return cls.parse(raw.decode("utf-8", "replace"), os.fspath(path))

    def text(self, format: str = "json") -> str:
        """json, markdown or html."""
        kind = value_of("dpi_report_format", "format", format)
        if self._source is not None:
            if format != "json":
                raise ArgumentError(f"format: found {format!r}, allowed json, as the report was "
                                    "read")
            return self._source
        out, n = ffi.new("char **"), ffi.new("size_t *")
        with self._using():
            call(lib.dpi_report_text, self.c, int(self._complete), kind, out, n)
        return taken(out[0])

    def save(self, path: Any) -> None:
        """Writes it: .html, .md, or JSON. A file that is there is replaced when the new one is
        whole; what is no file, as /dev/stdout, is written to. Raises FileError."""
        target = pathlib.Path(path)
        kinds = {".html": "html", ".htm": "html", ".md": "markdown"}
        made = self.text(kinds.get(target.suffix.lower(), "json"))
        try:
            if target.exists() and not target.is_file():
                target.write_text(made, "utf-8")  # /dev/stdout, a pipe
                return
            part = target.with_name(target.name + ".part")
            part.write_text(made, "utf-8")
            os.replace(part, target)
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(path)!r}: {error}") from None

    @property
    def claim(self) -> Claim:
        return Claim(lib.dpi_report_claimed(self.c), self)

    def verify(self, model: Any = None, output: Any = None, ledger: Any = None) -> Verification:
        """Computes what follows a second time, and the hashes of the files that are given. With a
        Ledger: whether it has the report's charge (StateError: it has not)."""
        report = self if self._source is not None else Report.parse(self.text())
        out = new("dpi_verification")
        try:
            with report._using():
                call(lib.dpi_report_verify, report.c,
                     ffi.NULL if model is None else path_bytes(getattr(model, "path", model)),
                     ffi.NULL if output is None else path_bytes(output), out)
                if ledger is not None:
                    call(lib.dpi_report_find_charge, report.c, ledger.c)
            return Verification(out)
        finally:
            lib.dpi_verification_free(out)

    def __repr__(self) -> str:
        return "<Report, closed>" if self._pointer is None else f"<Report: {self.claim.label}>"

    def _repr_html_(self) -> str:
        if self._source is not None:
            return self.claim._repr_html_()
        return page(self.text("html"))
