#!/usr/bin/env python3
"""Names and uses of files, by their symbols: two files of C have different names; two types of
headers have different names; the files of a folder use each other in one direction; a function has
a user outside its file and the tests, or is public.
    files.py SOURCE BUILD
"""
import collections
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD = (pathlib.Path(p).resolve() for p in sys.argv[1:])
# What is left. This list becomes shorter, not longer.
NO_USER = {
    # of another kind of processor
    "dpi_system_has_dotprod", "dpi_system_has_i8mm",
    # parts that tests hold to a reference
    "dpi_adapmixed_spent_get", "dpi_audit_play", "dpi_audit_result_init_size", "dpi_chi_square_tail",
    "dpi_source_pays", "dpi_augpe_look", "dpi_automaton_read",
    "dpi_graph_f64", "dpi_journal_decode",
    "dpi_local_rantext_z", "dpi_local_threshold", "dpi_magnitude_exactly", "dpi_magnitude_of",
    "dpi_quota_processors", "dpi_tuner_sum", "dpi_type_at",
    "dpi_vocab_is_control", "eval_logistic", "eval_logistic_sensitivity", "eval_noise_gaussian",
    "eval_noise_of_length",
    "fftw_assertion_failed",  # the library FFTW calls it
}


def tracked():
    """All files of C outside tests/ and build folders, by their path from SOURCE."""
    for path in sorted(SOURCE.rglob("*.[ch]")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(("build", "tests/", ".")):
            yield name


def objects():
    """Each object of a file that is not a test, and its file without the end .c."""
    for path in BUILD.rglob("*.c.o"):
        folder, _, inner = path.relative_to(BUILD).as_posix().partition("/CMakeFiles/")
        name = f"{folder}/{inner.partition('/')[2]}".removesuffix(".c.o")
        if not folder.startswith("tests") and (SOURCE / f"{name}.c").exists():
            yield path, name


def symbols():
    """By file: what it defines for others, and what it uses of others."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    for path, name in objects():
        for line in subprocess.run(["nm", path], capture_output=True, text=True,
                                   check=True).stdout.splitlines():
            kind, symbol = line[17:].split(None, 1)
            if kind in "TDBRVW":
                defined[name].add(symbol)
            elif kind == "U":
                used[name].add(symbol)
    return defined, used


def circles(uses):
    """Sets of more than one node that reach each other."""
    def reach(node):
        seen, left = set(), [node]
        while left:
            for other in uses[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        return seen
    reached = {node: reach(node) for node in list(uses)}
    found = []
    for node in sorted(reached):
        circle = {other for other in reached[node] if node in reached.get(other, ())}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def complain_of(what, found, known=()):
    """Whatever is found must be known, and the other way round."""
    for item in found:
        if item not in known:
            print(f"files: {what}: {item}")
    for item in known:
        if item not in found:
            print(f"files: {what}: {item} is none any more: out of the list")
    return sum(item not in known for item in found) + sum(item not in found for item in known)


files = list(tracked())
stems = collections.Counter(pathlib.PurePath(f).name for f in files if f.endswith(".c"))
failed = complain_of("a name of two files", sorted(n for n, k in stems.items() if k > 1))
types = collections.Counter()
for f in files:
    if f.endswith(".h") and not f.endswith("_tmpl.h"):
        text = (SOURCE / f).read_text()
        types.update(set(re.findall(r"^} (\w+);", text, re.M)) |
                     set(re.findall(r"^(?:typedef )?(?:struct|enum|union) (\w+) \{", text, re.M)))
failed += complain_of("a name of two types", sorted(t for t, k in types.items() if k > 1))

defined, used = symbols()
owner = {symbol: name for name in defined for symbol in defined[name]}
uses = collections.defaultdict(set)
for name in used:
    for symbol in used[name]:
        other = owner.get(symbol)
        if other and other != name and other.rpartition("/")[0] == name.rpartition("/")[0]:
            uses[name].add(other)
failed += complain_of("files that use each other", [sorted(c) for c in circles(uses)])

public = "".join((SOURCE / f).read_text() for f in files if f.startswith("include/"))
public = set(re.findall(r"\w+", public)) | {"main"}
somewhere = set().union(*used.values())
failed += complain_of("no user outside its file", sorted(set(owner) - somewhere - public), NO_USER)
passed = len(defined)
if passed < 300:
    print(f"files: only {passed} were found")
    failed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
