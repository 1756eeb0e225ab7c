"""What the headers say, the package says."""

from __future__ import annotations

import pydoc
import re
from typing import Any, Dict, List, Set

import dpinfer
import pytest
from conftest import SOURCE
from dpinfer._headers import STRUCTS
from dpinfer._library import ffi, lib
from dpinfer._options import NAMES

HEADERS = sorted((SOURCE / "include" / "dpinfer").glob("*.h"))
TEXT = {path.name: path.read_text() for path in HEADERS}
CODE = {name: re.sub(r"/\*.*?\*/", "", text, flags=re.S) for name, text in TEXT.items()}

# Of which struct a function has the fields as keywords.
FUNCTIONS = {
    dpinfer.Model.__init__: ["dpi_model_options"],
    dpinfer.Session.__init__: ["dpi_session_options"],
    dpinfer.Records.__init__: ["dpi_records_options"],
    dpinfer.Ledger.__init__: ["dpi_ledger_options"],
    dpinfer.Ledger.add: ["dpi_dataset_options", "dpi_privacy_unit"],
    dpinfer.Sampler.__init__: ["dpi_sampler_options"],
    dpinfer.plan: ["dpi_release_options", "dpi_sampler_options", "dpi_session_options",
                   "dpi_prompt_options", "dpi_wording"],
}
# Fields of another name, or of none: why.
OTHERS: Dict[str, Set[str]] = {
    "lengths of lists, versions, room": {
        "struct_size", "reserved", "room", "n_labels", "n_label_fields", "n_stops", "n_bans",
        "n_biases", "n_examples", "n_turns"},
    "made of other fields, or by the function": {
        "random", "random_user", "cancel", "cancel_user", "model_path", "seeded", "model",
        "records", "ledger", "dataset", "journal", "wording", "method", "session", "prompts",
        "answer_end", "logits", "logits_user", "denominator", "turns", "label", "unit", "biases"},
    "of processes that share a release, which are the program's": {
        "shard", "n_shards", "spread", "next_text", "next_user", "recalled", "recalled_user", "key",
        "charged", "as_drawn", "n_kept"},
    "a field that others stand for": {"label_field"},
    "of tables that are not written by people": {"is_record", "record_kind"},
}
NO_KEYWORD = set().union(*OTHERS.values())


def structs() -> Dict[str, List[str]]:
    """Each struct of the headers with its fields, by a reader of its own."""
    found = {}
    for code in CODE.values():
        for name, body in re.findall(r"typedef struct (dpi_\w+) \{(.*?)\n\} \1;", code, re.S):
            fields = []
            # The fields of a union are the struct's.
            body = re.sub(r"union \{(.*?)\};", r"\1", body, flags=re.S)
            for declaration in body.split(";"):
                pointer = re.search(r"\(\*(\w+)\)", declaration)
                if pointer:
                    fields.append(pointer.group(1))
                    continue
                declaration = re.sub(r"\[[^]]*\]", "", declaration)
                fields += [re.findall(r"\w+", part)[-1] for part in declaration.split(",")
                           if part.strip()]
            found[name] = fields
    return found


def test_every_field_is_declared() -> None:
    read = structs()
    assert len(read) > 40
    for name, fields in read.items():
        assert [field for field, _ in ffi.typeof(name).fields if field] == fields, name
        if "struct_size" in fields:
            assert list(STRUCTS[name]) == fields


def test_every_function_is_there() -> None:
    functions = {name for code in CODE.values()
                 for name in re.findall(r"DPI_API\b[^;{]*?\b(dpi_\w+)\(", code)}
    assert len(functions) > 200
    assert not {name for name in functions if not hasattr(lib, name)}


def keywords(function: Any) -> Set[str]:
    import inspect

    return set(inspect.signature(function).parameters)


def names_of(field: str) -> Set[str]:
    """What a keyword may be called: n_texts or texts, unit_field or unit."""
    return {field, re.sub("^n_", "", field), re.sub("_fields?$", "", field),
            {"n_ref": "references", **NAMES}.get(field, field)}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__qualname__)
def test_every_option_is_a_keyword(function: Any) -> None:
    read = structs()
    known = keywords(function)
    missing = {field for name in FUNCTIONS[function] for field in read[name]
               if not names_of(field) & known and field not in NO_KEYWORD}
    if function is dpinfer.plan:  # they follow from the records and the rest
        missing -= {"n_vocab", "n_ref", "n_seq"}
    assert not missing


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__qualname__)
def test_help(function: Any) -> None:
    """help() has each keyword, with what it means and its default."""
    text = pydoc.plain(pydoc.render_doc(function))
    for name in keywords(function) - {"self", "path", "model", "records", "ledger", "dataset",
                                      "data", "vocab", "references", "name", "epsilon", "delta",
                                      "create", "logits",
                                      "grammar", "json_schema", "logit_bias", "unit",
                                      "max_per_unit", "adjacency"}:
        about = re.search(rf"^ +{name}: .*default .*\n +(\S.*)$", text, re.M)
        assert about, name
    assert "/*" not in text and "*/" not in text


def test_wrong_options(model: dpinfer.Model) -> None:
    """A wrong value gets the library's message, a wrong name the nearest one."""
    def plan(**options: Any) -> Any:
        return dpinfer.plan(model, n_records=12, **{"epsilon": 1.0, "description": "a", **options})

    for options, said in (({"batch": -1}, "batch is -1"), ({"tau": 1000.0}, "tau"),
                          ({"epsilon": -1}, "epsilon"), ({"method": "none"}, "invisibleink|amin"),
                          ({"texts": 2**40}, "texts: found 1099511627776"),
                          ({"label_names": ["a\0b"]}, "NUL"), ({"stops": ["\udc80"]}, "stops.0.")):
        with pytest.raises(dpinfer.ArgumentError, match=said.replace("|", r"\|")):
            plan(**options)
    with pytest.raises(TypeError, match="nearest is 'epsilon'"):
        plan(epsilno=1)
    for options in ({"batch": "4"}, {"epsilon": "1"}, {"description": 5}, {"stops": 5},
                    {"method": None, "batch": 1.5}, {"tau": []}, {"biases": 1}, {"n_stops": 1}):
        with pytest.raises(TypeError):
            plan(**options)


def test_types() -> None:
    """py.typed is there, so that types count."""
    import pathlib

    assert (pathlib.Path(dpinfer.__file__).parent / "py.typed").exists()
    assert set(dpinfer.__all__) <= set(dir(dpinfer)) and dpinfer.__version__
