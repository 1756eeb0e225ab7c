"""Records from what Python has them in: a table of any library, a list, a path."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from ._library import ArgumentError, Handle, call, ffi, lib, path_bytes
from ._options import Table

RECORDS = Table(records=("dpi_records_options", "label_field"))
_LINE = 2  # DPI_RECORD_LINE


def _columns(data: Any) -> Optional[Tuple[List[str], Callable[[str], Any]]]:
    """The names of a table's columns, and a function for each's values: something with tolist,
    to_list or to_pylist. None: no table."""
    if not (hasattr(data, "__dataframe__") or hasattr(data, "__arrow_c_stream__")):
        return None
    names = getattr(data, "columns", None)
    if names is None or callable(names) or not hasattr(data, "__getitem__"):
        try:
            import pyarrow as pa
        except ImportError:
            raise ArgumentError("records: found a table of Arrow; install pyarrow to read it"
                                ) from None
        data = (pa.table(data) if hasattr(data, "__arrow_c_stream__")
                else __import__("pyarrow.interchange").interchange.from_dataframe(data))
    if hasattr(data, "column_names"):  # pyarrow: `columns` are the columns
        names = data.column_names
    known: List[Any] = list(() if names is None else names)
    by_text = {str(name): name for name in known}
    return [str(name) for name in known], lambda name: data[by_text[name]]


def _values(column: Any) -> List[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _plain(value: Any) -> Any:
    """A value as JSON has it: a text, a number; None for what is missing or neither."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):  # one that is longer might not become digits
        return value if value.bit_length() < 2000 else None
    if isinstance(value, float):
        return value if value - value == 0 else None  # neither NaN nor infinite
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy
        return _plain(value.item())
    return None


def _rows(data: Iterable[Any], wanted: List[str]) -> Tuple[List[List[Any]], bool]:
    """Columns of a list of texts or of dicts; and whether it is of texts."""
    rows = list(data)
    if all(row is None or isinstance(row, str) for row in rows):
        return [rows], True
    found: List[List[Any]] = [[] for _ in wanted]
    for i, row in enumerate(rows):
        if not (row is None or isinstance(row, (str, Mapping))):
            raise TypeError(f"records[{i}]: found {type(row).__name__}, allowed a text or a dict")
        for values, name in zip(found, wanted):
            values.append(row.get(name) if isinstance(row, Mapping) else
                          row if name == wanted[0] else None)
    known = {name for row in rows if isinstance(row, Mapping) for name in row}
    for name in wanted:
        if name not in known:
            raise ArgumentError(f"records: no record has '{name}'")
    return found, False


def _fields(structs: Dict[str, Any]) -> List[str]:
    """The names of what is read: text, unit, labels."""
    o = structs["records"]
    found = [ffi.string(o.text_field)]
    if o.unit_field != ffi.NULL:
        found.append(ffi.string(o.unit_field))
    found += [ffi.string(o.label_fields[i]) for i in range(o.n_label_fields)]
    return [name.decode() for name in dict.fromkeys(found)]


def lines_of(data: Any, wanted: List[str]) -> bytes:
    """The records as lines of JSON, with the wanted fields alone."""
    table = _columns(data)
    if table is not None:
        names, column = table
        for name in wanted:
            if names.count(name) != 1:
                found = "several columns" if name in names else "no column"
                raise ArgumentError(f"records: {found} '{name}'; there are "
                                    f"{', '.join(map(repr, names))}")
        columns = [_values(column(name)) for name in wanted]
    elif isinstance(data, (bytes, Mapping)):
        raise TypeError(f"records: found {type(data).__name__}, allowed a table, a list, a path")
    else:
        columns, texts = _rows(data, wanted)
        if texts and len(wanted) > 1:
            raise ArgumentError(f"records: found a list of texts, which has no '{wanted[1]}'")
    lines = [json.dumps(dict(zip(wanted, map(_plain, row)))) + "\n" for row in zip(*columns)]
    return "".join(lines).encode("ascii")


class Records(Handle):
    """The private documents. From a path (a folder of .txt, a .jsonl or .csv, each also as .gz), a
    table (pandas, polars, pyarrow, anything with the Arrow or DataFrame protocol), a list of texts
    or of dicts.

    text, unit, label name columns (fields); label may be a list. A record that is missing, blank
    or no text keeps its place and is null. A text in Python's own memory cannot be wiped; the
    copy here is, when it is closed.

    Raises ArgumentError (no such column), FileError, FormatError, OutOfMemory.
    """

    def __init__(self, data: Any, **options: Any) -> None:
        keep: List[Any] = []
        structs = RECORDS.new()
        RECORDS.set(structs, options, keep)
        out = ffi.new("dpi_records **")
        is_path = isinstance(data, (str, os.PathLike))
        if is_path:
            call(lib.dpi_records_open, path_bytes(data), structs["records"], out)
        else:
            try:
                lines = lines_of(data, _fields(structs))
            except RecursionError:
                raise TypeError("records: a record that holds itself") from None
            call(lib.dpi_records_open_buffer, ffi.from_buffer(lines), len(lines), _LINE,
                 structs["records"], out)
            del lines
        super().__init__(out[0], lib.dpi_records_close)
        # How the same records are read again: by a job that goes on, or from another table.
        self.options = {k: v for k, v in options.items() if v is not None}
        self.path = os.path.abspath(os.fspath(data)) if is_path else None

    def __len__(self) -> int:
        return int(lib.dpi_records_count(self.c))

    @property
    def units(self) -> int:
        """Whom a guarantee protects: with `unit` as many as there are IDs, and records
        without one, which add nothing; else as many as records."""
        return int(lib.dpi_records_unit_count(self.c))

    def __repr__(self) -> str:
        return "<Records, closed>" if self._pointer is None else "<Records>"


def split_records(data: Any, options: Dict[str, Any]) -> Optional[Records]:
    """Records of what is given (None: none), and the options that are about them, which it takes
    out. Raises ArgumentError: there are such options, and nothing is read here."""
    about = {k: options.pop(k) for k in list(options) if k in RECORDS.keywords}
    about = {k: v for k, v in about.items() if v is not None}
    if data is not None and not isinstance(data, Records):
        return Records(data, **about)
    if about:
        raise ArgumentError(f"{next(iter(about))}: allowed with records that are read here")
    return data


RECORDS.document(Records.__init__)
