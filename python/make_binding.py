"""Makes dpinfer/_binding.py and dpinfer/_headers.py from the public headers of the library.

    python make_binding.py INCLUDE OUT [CC]

INCLUDE is the folder with dpinfer/*.h, OUT the folder of the package. _binding.py declares every
public type and function for cffi, in ABI mode: no compiler is needed where it is used. _headers.py
has what the declarations say to people: of each struct its fields with their comments, and of each
enum its names. So nothing of the headers is written down a second time.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import cffi

ENUM = re.compile(r"typedef enum (dpi_\w+) \{(.*?)\} \1;", re.S)
STRUCT = re.compile(r"typedef struct (dpi_\w+) \{(.*?)\n\} \1;", re.S)
FIELD = re.compile(r"([^;{}]+);[ \t]*(?:/\*(.*?)\*/)?", re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
HEADING = re.compile(r"^\s*/\*.*?\*/", re.S | re.M)  # a comment that is about no one field


def preprocess(compiler, include, macros):
    """All headers as one text, without directives and attributes; or their macros."""
    names = sorted(p.name for p in (include / "dpinfer").glob("*.h"))
    with tempfile.TemporaryDirectory() as folder:
        for system in ("stddef.h", "stdint.h"):
            (pathlib.Path(folder) / system).touch()
        source = pathlib.Path(folder) / "all.c"
        source.write_text("".join(f'#include "dpinfer/{name}"\n' for name in names))
        flags = ["-dM"] if macros else ["-P", "-D__attribute__(x)="]
        done = subprocess.run(
            [compiler, "-E", "-nostdinc", "-I", folder, "-I", str(include), *flags, str(source)],
            check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def constants(text):
    """The macros that are whole numbers or strings."""
    found = {}
    for name, value in re.findall(r"^#define (DPI_\w+) (.+)$", text, re.M):
        number = re.fullmatch(r"\(?([\d <]+)\)?u?", value)
        if number:
            left, _, shift = number.group(1).partition("<<")
            found[name] = int(left) << int(shift or 0)
        elif re.fullmatch(r"\d+\.\d+", value):
            found[name] = float(value)
    return found


def enum_values(body):
    """Names and values of the enumerators of a preprocessed enum."""
    values, following = {}, 0
    for item in filter(None, (part.strip() for part in body.split(","))):
        name, _, value = item.partition("=")
        following = int(value.strip(" ()"), 0) if value else following
        values[name.strip()] = following
        following += 1
    return values


def words(values):
    """DPI_ADJACENCY_ADD_REMOVE -> add-remove: without what all names begin with."""
    names = list(values)
    n = 0 if len(names) > 1 else names[0].rfind("_") + 1
    while len({name[:n + 1] for name in names}) == 1 and n < len(min(names, key=len)):
        n += 1
    n = names[0].rfind("_", 0, n) + 1
    return {name[n:].lower().replace("_", "-"): value for name, value in values.items()}


def sentence(comment):
    return re.sub(r"\s+", " ", comment or "").strip()


def comments(body):
    """The comment of each field of a struct in a header; an empty one where there is none."""
    found = {}
    for declaration, comment in FIELD.findall(HEADING.sub("", body)):
        pointer = re.search(r"\(\*(\w+)\)\(", declaration)
        parts = COMMENT.sub(" ", declaration).split(",")
        found_names = [re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*\s*$", part) for part in parts]
        names = [pointer.group(1)] if pointer else [m.group(1) for m in found_names if m]
        for name in names:
            found[name] = sentence(comment)
    return found


def describe(preprocessed):
    enums = {name: words(enum_values(body)) for name, body in ENUM.findall(preprocessed)
             if name != "dpi_status"}
    statuses = enum_values(re.search(ENUM.pattern.replace(r"(dpi_\w+)", "(dpi_status)"),
                                     preprocessed, re.S).group(2))
    return enums, statuses


def structs_of(include, ffi):
    """Fields of each struct with a struct_size: name -> (C type, comment), in their order."""
    found = {}
    for header in sorted((include / "dpinfer").glob("*.h")):
        for name, body in STRUCT.findall(header.read_text()):
            if "struct_size" not in body:
                continue
            said = comments(body)
            found[name] = {}
            for field, of in ffi.typeof(name).fields:
                if field and field not in said and name != "dpi_claim_part":
                    raise SystemExit(f"{header.name}: no comment is found for {name}.{field}")
                found[name][field] = (of.type.cname, said.get(field, ""))
    return found


def main():
    include, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    compiler = sys.argv[3] if len(sys.argv) > 3 else "cc"
    preprocessed = preprocess(compiler, include, macros=False)
    ffi = cffi.FFI()
    ffi.cdef(preprocessed)
    enums, statuses = describe(preprocessed)
    ffi.set_source("dpinfer._binding", None)
    ffi.emit_python_code(str(out / "_binding.py"))
    lines = ['"""Made by make_binding.py from the public headers: do not edit."""\n']
    macros = constants(preprocess(compiler, include, macros=True))
    for name, value in (("CONSTANTS", macros), ("STATUSES", statuses), ("ENUMS", enums),
                        ("STRUCTS", structs_of(include, ffi))):
        lines.append(f"\n{name} = {{\n")
        lines += [f"    {key!r}: {entry!r},\n" for key, entry in value.items()]
        lines.append("}\n")
    (out / "_headers.py").write_text("".join(lines))


main()
