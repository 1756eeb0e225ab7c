"""How things look: a bar while something goes on, and pages in a notebook."""

from __future__ import annotations

import html
from typing import Any

escape = html.escape


def bar(total: int, unit: str, wanted: bool) -> Any:
    """A bar of tqdm; None where it is not wanted, or tqdm is not there."""
    if not wanted:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=unit)


def lines(text: str) -> str:
    """Lines of text as HTML."""
    return f"<pre>{escape(text)}</pre>"


def page(text: str) -> str:
    """A whole page of HTML inside another one."""
    return f'<iframe srcdoc="{escape(text)}" width="100%" height="600"></iframe>'
