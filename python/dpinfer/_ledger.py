"""A budget that is kept: what all runs about a dataset have cost, in a file."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ._library import ArgumentError, Handle, call, ffi, lib, new, path_bytes, text
from ._options import Table, encoded, flag, narrow, string, struct_dict, value_of
from ._report import _sized

LEDGER = Table(ledger=("dpi_ledger_options", "create"))
DATASET = Table(dataset=("dpi_dataset_options", "unit.is_record unit.record_kind"))


def open_ledger(path: Any, create: bool, options: Dict[str, Any]) -> Any:
    keep: List[Any] = []
    structs = LEDGER.new()
    LEDGER.set(structs, options, keep)
    structs["ledger"].create = flag("create", create)
    out = ffi.new("dpi_ledger **")
    call(lib.dpi_ledger_open, path_bytes(path), structs["ledger"], out)
    return out[0]


class Ledger(Handle):
    """A file that counts what every run about a dataset has cost, and refuses what is too much.

    A charge is on the disk before the first record is read. Any number of processes may use it.
    create: the file is made if it is not there. Raises FileError, FormatError, Unsupported.
    """

    def __init__(self, path: Any, create: bool = False, **options: Any) -> None:
        super().__init__(open_ledger(path, create, options), lib.dpi_ledger_close)
        self.path = path

    def add(self, name: str, epsilon: float, delta: float, *, unit: Optional[str] = None,
            max_per_unit: int = 0, adjacency: Optional[str] = None, **options: Any) -> None:
        """Opens a dataset with a budget: what all runs together may come to.

        unit: the field of those who are protected, at most max_per_unit records of each used;
        adjacency: what neighbouring records are. What is not given is fixed by the first charge.
        Raises ArgumentError (a name that is there already)."""
        keep: List[Any] = []
        structs = DATASET.new()
        DATASET.set(structs, {"name": name, "epsilon": epsilon, "delta": delta, **options}, keep)
        whom = structs["dataset"].unit
        whom.max_per_unit = narrow("max_per_unit", "int32_t", max_per_unit)
        if adjacency is not None:
            whom.adjacency = value_of("dpi_adjacency", "adjacency", adjacency)
        if unit is not None:
            field = encoded("unit", unit)
            if not 0 < len(field) < len(whom.unit_field) or b"\0" in field:
                raise ArgumentError(f"unit: allowed are 1..{len(whom.unit_field) - 1} bytes of text"
                                    " without NUL")
            whom.unit_field, whom.is_record = field, 0
        call(lib.dpi_ledger_add, self.c, structs["dataset"])

    def seal(self, name: str) -> None:
        """Closes a dataset for ever."""
        keep: List[Any] = []
        call(lib.dpi_ledger_seal, self.c, string("name", name, keep))

    def info(self, name: str) -> Dict[str, Any]:
        """Budget, what is charged and left (as epsilon and as divergences), whom charges protect.
        """
        keep: List[Any] = []
        out = new("dpi_dataset_info")
        call(lib.dpi_ledger_info, self.c, string("name", name, keep), out)
        return _info(out)

    @property
    def datasets(self) -> List[Dict[str, Any]]:
        """info() of each dataset, in the order in which they were added."""
        found: List[Dict[str, Any]] = []
        while True:
            out = new("dpi_dataset_info")
            call(lib.dpi_ledger_info_at, self.c, len(found), out)
            info = _info(out)
            if not info["name"]:
                return found
            found.append(info)

    def charges(self, name: str) -> Iterator[Dict[str, Any]]:
        """What was charged, in order: date, method, note, amount, cost, counted."""
        keep: List[Any] = []
        after, dataset = 0, string("name", name, keep)
        while True:
            out = new("dpi_charge")
            call(lib.dpi_ledger_charge_next, self.c, dataset, after, out)
            if out.id == 0:
                return
            after = out.id
            found = struct_dict(out, "dpi_charge")
            for key in ("amount", "before"):
                found[key] /= lib_one()
            found["unit"] = _sized(lib.dpi_privacy_unit_text, ffi.addressof(out, "unit"))
            yield found

    def to_pandas(self, name: str) -> Any:
        """charges() as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.charges(name)))

    def __repr__(self) -> str:
        return f"<Ledger {self.path}>" if self._pointer is not None else "<Ledger, closed>"


def ledger_of(value: Any) -> Optional[Ledger]:
    """A Ledger, or that of a path; None stays None."""
    return value if value is None or isinstance(value, Ledger) else Ledger(value)


def lib_one() -> float:
    """A divergence of 1 as an amount: DPI_LEDGER_ONE."""
    from ._headers import CONSTANTS

    return float(CONSTANTS["DPI_LEDGER_ONE"])


def _info(out: Any) -> Dict[str, Any]:
    found = struct_dict(out, "dpi_dataset_info")
    for key in ("budget", "charged", "left", "last"):
        found[key] /= lib_one()
    found["unit"] = _sized(lib.dpi_privacy_unit_text, ffi.addressof(out, "unit"))
    found["scope"] = text(lib.dpi_scope_name(out.scope))
    return found


LEDGER.document(Ledger.__init__)
DATASET.document(Ledger.add)
