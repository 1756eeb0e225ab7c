"""How the pages are built: sphinx-build -W -b html python/docs OUT, with dpinfer installed."""

import re

import dpinfer

project = "dpinfer"
author = "the dpinfer authors"
copyright = "the dpinfer authors, Apache License 2.0"
version = release = dpinfer.__version__
extensions = ["sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Differentially private text about sensitive documents",
    "fixed_sidebar": True,
}
html_show_sourcelink = False
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # names of what is private to the package say nothing to a reader
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 96

QUOTED = re.compile(r"`([^`]+)`")


def plain(text):
    """A docstring says what it says: it has no markup but quotes of code."""
    parts = QUOTED.split(text)
    parts[0::2] = [re.sub(r"([\\*|])|(?<=\w)(_)(?!\w)", r"\\\1\2", part) for part in parts[0::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def without_markup(app, what, name, thing, options, lines):
    lines[:] = [plain(line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", without_markup)
