"""Options of the library as keyword arguments.

What there is, of which type, and what it means comes from the public headers (_headers.py), the
default from the library's own _init function, and what is allowed from its checks.
"""

from __future__ import annotations

import inspect
import operator
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ._headers import ENUMS, STRUCTS
from ._library import ArgumentError, call, ffi, lib, new, text

_INTEGERS = {"int8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "char"}
_REALS = {"double", "float"}
_STRINGS = {"char *", "dpi_bytes"}
_LISTS = {"dpi_bytes *": "dpi_bytes", "char * *": "char *", "int32_t *": "int32_t"}
_NEVER = {"struct_size", "reserved", "room", "random", "random_user", "cancel", "cancel_user"}


# Fields whose own name says too little, or nothing to people.
NAMES = {"n_ctx": "context", "n_private": "private_tokens"}


class Keyword(NamedTuple):
    """A keyword argument, and the field that it is."""

    name: str
    part: str  # which of the structs
    path: Tuple[str, ...]  # fields that lead to it
    type: str
    about: str
    enum: str  # of its names; ""
    length: str  # the field with the length of the list; ""
    flag: bool  # 0 or 1


def _shorter(field: str) -> str:
    """n_texts -> texts, unit_field -> unit: a keyword says what it is without them."""
    field = re.sub(r"^n_(?=[a-z]{3})", "", field)
    return re.sub(r"^(text|unit|label)_fields?$", r"\1", field)


def _counts(fields: Mapping[str, Tuple[str, str]]) -> Dict[str, str]:
    """Arrays, and the fields that have their lengths: "[n_stops] ..." in the comment of stops."""
    found = {}
    for field, (_, about) in fields.items():
        length = re.match(r"\[(n_\w+)\]", about)
        if length and length.group(1) in fields:
            found[field] = length.group(1)
    return found


def _walk(part: str, struct: str, skip: frozenset[str],
          path: Tuple[str, ...] = ()) -> List[Keyword]:
    fields = STRUCTS[struct]
    counts = _counts(fields)
    found = []
    for field, (kind, about) in fields.items():
        full = ".".join((*path, field))
        if field in _NEVER or full in skip or field in counts.values():
            continue
        if kind in STRUCTS:
            found += _walk(part, kind, skip, (*path, field))
            continue
        listed = kind in _LISTS and field in counts
        if not (listed or kind in _INTEGERS | _REALS | _STRINGS):
            continue
        enum = re.search(r"\ba (dpi_\w+)", about)
        known = enum.group(1) if enum and enum.group(1) in ENUMS and kind == "int32_t" else ""
        found.append(Keyword(_shorter(field), part, (*path, field), kind, about, known,
                             counts.get(field, ""),
                             kind == "int32_t" and bool(re.match(r"1( \(default\))?:", about))))
    return found


class Table:
    """The keyword arguments of a function, which are fields of one or more structs.

    parts: name -> (struct, fields that are no keywords). Of two with one name the first stays.
    names: what else a keyword is called, for fields whose own name says too little.
    """

    def __init__(self, names: Optional[Mapping[str, str]] = None,
                 **parts: Tuple[str, str]) -> None:
        self.parts = {part: struct for part, (struct, _) in parts.items()}
        self.keywords: Dict[str, Keyword] = {}
        for part, (struct, skip) in parts.items():
            for keyword in _walk(part, struct, frozenset(skip.split())):
                name = (names or {}).get(keyword.path[-1], keyword.name)
                self.keywords.setdefault(name, keyword._replace(name=name))

    def new(self) -> Dict[str, Any]:
        """The structs with their defaults."""
        made = {}
        for part, struct in self.parts.items():
            made[part] = new(struct)
        return made

    def set(self, structs: Mapping[str, Any], values: Mapping[str, Any], keep: List[Any]) -> None:
        """Sets fields; None is "not given". `keep` gets what the structs point to.

        Raises TypeError for a keyword that there is not, or a value of another type.
        """
        lengths: Dict[Tuple[str, str], Tuple[str, int]] = {}  # of lists that share a field for it
        for name, value in values.items():
            if name not in self.keywords:
                raise TypeError(f"there is no option '{name}'{_nearest(name, self.keywords)}")
            if value is None:
                continue
            keyword = self.keywords[name]
            struct = _holder(structs[keyword.part], keyword.path)
            _set(struct, keyword, value, keep)
            if keyword.length:
                n = int(getattr(struct, keyword.length))
                other, n_other = lengths.setdefault((keyword.part, keyword.length), (name, n))
                if n != n_other:
                    raise ArgumentError(f"{name}: found {n}, allowed {n_other}, as many as {other}")

    def get(self, structs: Mapping[str, Any], name: str) -> Any:
        """The value of a field as Python has it."""
        keyword = self.keywords[name]
        value = getattr(_holder(structs[keyword.part], keyword.path), keyword.path[-1])
        if keyword.enum:
            return name_of(keyword.enum, value)
        if keyword.type == "char *":
            return text(value) if value != ffi.NULL else None
        if keyword.type == "char":
            return value.decode("latin-1")
        if keyword.type == "dpi_bytes":
            return text(value.data, value.n_bytes) if value.data != ffi.NULL else None
        if keyword.flag:
            return bool(value)
        if name == "seed":
            return None  # not given: random bits of the system
        return None if keyword.length else value

    def document(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Gives a function with **options their names, defaults and what they mean."""
        defaults = self.new()
        old = inspect.signature(function)
        given = [p for p in old.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in given}
        more, lines = [], ["", f"Options of {', '.join(self.parts.values())}:", ""]
        for name, keyword in self.keywords.items():
            if name in taken:
                continue
            default = self.get(defaults, name)
            more.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
            lines += [f"{name}: {_kind(keyword)}, default {default!r}", f"    {keyword.about}"]
            if keyword.enum:
                lines.append(f"    One of {', '.join(names(keyword.enum))}.")
        vars(function)["__signature__"] = old.replace(parameters=[*given, *more])
        doc = inspect.getdoc(function) or ""
        function.__doc__ = doc + "\n" + "\n".join(lines) + "\n"
        return function


def _nearest(name: str, among: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(name, among, 1)
    return f"; the nearest is '{near[0]}'" if near else ""


def _holder(struct: Any, path: Tuple[str, ...]) -> Any:
    for field in path[:-1]:
        struct = getattr(struct, field)
    return struct


def _kind(keyword: Keyword) -> str:
    if keyword.enum:
        return "a name"
    if keyword.length:
        return "a list"
    if keyword.flag:
        return "True or False"
    return ("a text" if keyword.type in _STRINGS or keyword.type == "char" else
            "a number" if keyword.type in _REALS else "a whole number")


# ---- Names of enums ---------------------------------------------------------------------------

_PARSERS = {"dpi_chat": lib.dpi_chat_parse, "dpi_isa": lib.dpi_isa_parse}
_NAMERS = {"dpi_chat": lib.dpi_chat_name, "dpi_isa": lib.dpi_isa_name}


def names(enum: str) -> List[str]:
    """The names that a value of this enum may have."""
    return [name_of(enum, value) for value in ENUMS[enum].values() if value >= 0]


def name_of(enum: str, value: int) -> str:
    if enum in _NAMERS:
        return text(_NAMERS[enum](value)) or str(value)
    for name, number in ENUMS[enum].items():
        if number == value:
            return name
    return str(value)


def value_of(enum: str, option: str, value: Any) -> int:
    """The number of a name, or of a number that one has."""
    if isinstance(value, str) and enum in _PARSERS:
        found = ffi.new("int32_t *")
        call(_PARSERS[enum], string(option, value, []), found)
        return int(found[0])
    known = ENUMS[enum]
    if isinstance(value, str) and value in known:
        return known[value]
    if not isinstance(value, str) and _integer(option, value) in known.values():
        return _integer(option, value)
    raise ArgumentError(f"{option}: found {value!r}, allowed {'|'.join(names(enum))}")


# ---- Values -----------------------------------------------------------------------------------


def _integer(option: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise TypeError(f"{option}: found {type(value).__name__}, allowed a whole number") from None


def flag(option: str, value: Any) -> int:
    """True or False, or the whole number of one."""
    if narrow(option, "int64_t", value) not in (0, 1):
        raise ArgumentError(f"{option}: found {value}, allowed True, False")
    return int(value)


def _real(option: str, value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{option}: found {type(value).__name__}, allowed a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{option}: found {type(value).__name__}, allowed a number") from None
    except OverflowError:
        raise ArgumentError(f"{option}: the number is too large") from None


def encoded(option: str, value: Any) -> bytes:
    """A text as UTF-8. Raises TypeError; ArgumentError where it has a lone surrogate."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{option}: found {type(value).__name__}, allowed a text")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise ArgumentError(f"{option}: the text cannot be written as UTF-8") from None


def string(option: str, value: Any, keep: List[Any]) -> Any:
    """A text as a string of C, which `keep` owns."""
    data = encoded(option, value)
    if b"\0" in data:
        raise ArgumentError(f"{option}: the text has a NUL, which is not allowed")
    keep.append(ffi.new("char[]", data))
    return keep[-1]


def fill_bytes(struct: Any, option: str, value: Any, keep: List[Any]) -> None:
    """A text as dpi_bytes."""
    data = encoded(option, value)
    keep.append(ffi.new("char[]", data))
    struct.data, struct.n_bytes = keep[-1], len(data)


def _list(keyword: Keyword, value: Any, keep: List[Any]) -> Tuple[Any, int]:
    if isinstance(value, (str, bytes)):
        value = [value]
    try:
        items = list(value)
    except TypeError:
        raise TypeError(f"{keyword.name}: found {type(value).__name__}, allowed a list") from None
    made = ffi.new(f"{_LISTS[keyword.type]}[]", max(len(items), 1))
    keep.append(made)
    for i, item in enumerate(items):
        where = f"{keyword.name}[{i}]"
        if keyword.type == "dpi_bytes *":
            fill_bytes(made[i], where, item, keep)
        elif keyword.type == "char * *":
            made[i] = ffi.NULL if item is None else string(where, item, keep)  # it has a default
        else:
            made[i] = narrow(where, "int32_t", item)
    return made, len(items)


def narrow(option: str, kind: str, value: Any) -> int:
    """A whole number that a type of C holds. Raises TypeError, ArgumentError."""
    number = _integer(option, value)
    bits = 8 * ffi.sizeof(kind)
    low, high = (0, 2**bits - 1) if kind.startswith(("u", "size")) else (-2**(bits - 1),
                                                                         2**(bits - 1) - 1)
    if not low <= number <= high:
        raise ArgumentError(f"{option}: found {number}, allowed a whole number {low}..{high}")
    return number


def _set(struct: Any, keyword: Keyword, value: Any, keep: List[Any]) -> None:
    name, field = keyword.name, keyword.path[-1]
    if keyword.enum:
        setattr(struct, field, value_of(keyword.enum, name, value))
    elif keyword.length:
        made, n = _list(keyword, value, keep)
        setattr(struct, field, made)
        setattr(struct, keyword.length, n)
    elif keyword.type == "char":
        if not isinstance(value, str) or len(value) != 1 or ord(value) > 127:
            raise ArgumentError(f"{name}: allowed is one ASCII character")
        setattr(struct, field, value.encode("ascii"))
    elif keyword.type == "char *":
        setattr(struct, field, string(name, value, keep))
    elif keyword.type == "dpi_bytes":
        fill_bytes(getattr(struct, field), name, value, keep)
    elif keyword.type in _REALS:
        setattr(struct, field, _real(name, value))
    else:
        setattr(struct, field, narrow(name, keyword.type, value))


def struct_dict(struct: Any, name: str) -> Dict[str, Any]:
    """A struct that the library has filled in, as a dict of what is in it."""
    found: Dict[str, Any] = {}
    for field, (kind, about) in STRUCTS[name].items():
        if field in ("struct_size", "reserved") or (kind not in _INTEGERS | _REALS and not (
                kind.startswith("char[") or kind.startswith("char("))):
            continue
        value = getattr(struct, field)
        enum = re.search(r"\ba (dpi_\w+)", about)
        if kind.startswith("char["):
            found[field] = text(value)
        elif enum and enum.group(1) in ENUMS:
            found[field] = name_of(enum.group(1), value)
        else:
            found[field] = value
    return found
