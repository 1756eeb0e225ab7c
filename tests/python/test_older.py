"""Today's headers keep what tests/include/older/dpinfer.abi2 has: programs and libraries of
different ages work together."""

from __future__ import annotations

import re
from typing import Any, Dict

import cffi
from conftest import SOURCE
from dpinfer._library import FOLDER, ffi, lib

OLDER = (SOURCE / "tests/include/older/dpinfer.abi2").read_text()
CODE = re.sub(r"/\*.*?\*/", "", OLDER, flags=re.S)


def older() -> Any:
    made = cffi.FFI()
    made.cdef(CODE)
    return made


def described(of: Any) -> Any:
    """A type without what may grow: a struct by its name."""
    if of.kind == "pointer" and of.item.kind == "function":
        of = of.item
    if of.kind == "function":
        return (described(of.result), *(described(x) for x in of.args), of.ellipsis)
    if of.kind in ("pointer", "array"):
        return of.kind, described(of.item), getattr(of, "length", None)
    return re.sub(r"^(struct|enum) ", "", of.cname)


def fields(of: Any) -> Dict[str, Any]:
    return {name: (field.offset, described(field.type)) for name, field in of.fields or []}


def test_structs_only_grow() -> None:
    before, n_grown = older(), 0
    names = re.findall(r"^typedef struct (dpi_\w+) \{", CODE, re.M)
    assert len(names) > 70
    for name in names:
        was, now = before.typeof(name), ffi.typeof(name)
        kept = fields(now)
        for field, place in fields(was).items():
            if field not in ("room", "reserved"):
                assert kept.get(field) == place, f"{name}.{field}"
        size, grown = before.sizeof(was), ffi.sizeof(now) > before.sizeof(was)
        n_grown += grown
        if grown:
            assert "struct_size" in kept and "room" not in kept, f"{name} has grown"
        else:
            assert ffi.sizeof(now) == size, f"{name} has become smaller"
        # Not into the padding at the end: nobody has set it.
        for field, (offset, _) in kept.items():
            assert field in fields(was) or offset >= size or "room" in kept, f"{name}.{field}"
        if "room" in kept and "room" in fields(was):
            end = kept["room"][0] + ffi.sizeof(dict(now.fields)["room"].type)
            assert end == size, f"{name}: what is behind its room"
    assert n_grown > 15


def test_functions_and_numbers_stay() -> None:
    before = older()
    enums = re.findall(r"^typedef enum (dpi_\w+) \{", CODE, re.M)
    assert len(enums) > 30
    for name in enums:
        was, now = before.typeof(name).relements, ffi.typeof(name).relements
        for number in set(was) - {"DPI_STATUS_COUNT"}:
            assert now.get(number) == was[number], number
    functions = set(re.findall(r"\b(dpi_\w+)\(", re.sub(r"^typedef .*?;", "", CODE, flags=re.M)))
    assert len(functions) > 300
    library = before.dlopen(str(FOLDER / "lib" / "libdpinfer_full.so"))
    for name in functions:
        was, now = before.typeof(getattr(library, name)), ffi.typeof(getattr(lib, name))
        assert described(was) == described(now), name
