r"""Foreign text for HTML, and elements that cannot be broken by what they hold."""

from __future__ import annotations

import math
import unicodedata
from html import escape
from typing import Self

from pytest_adaptive_eval.text import clean_xml

__all__ = ["Markup", "clean_html", "tag"]

#: Not printable, and shown all the same: line ends, tabs, and the joiners that scripts and emoji need.
_KEPT = "\n\t\u200c\u200d"


class Markup(str):
    """Finished markup, which `tag` and jinja2 take as it is; any other text they escape."""

    __slots__ = ()

    def __html__(self) -> Self:
        """What jinja2 asks for."""
        return self


def clean_html(text: object, limit: int | None = None) -> str:
    r"""Text in which everything can be seen, not yet escaped.

    Controls, lone surrogates and invisible characters, those that turn the
    direction of writing among them, are shown as their escape, such as
    ``\u202e``.

    Parameters
    ----------
    text : object
    limit : int, optional
        Characters kept; a longer text ends by saying how many were left out.
    """
    given = str(text)
    cut = 0 if limit is None else max(len(given) - limit, 0)
    shown = clean_xml(given[:limit])
    if not shown.isprintable():
        shown = "".join(c if _visible(c) else c.encode("unicode_escape").decode("ascii") for c in shown)
    return f"{shown}… ({cut:,} more characters)" if cut else shown


def _visible(character: str) -> bool:
    return character.isprintable() or character in _KEPT or unicodedata.category(character) == "Zs"


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An element.

    Parameters
    ----------
    name : str
    children : str
        `Markup` is taken as it is, any other text cleaned and escaped.
    attributes : object
        ``stroke_width`` becomes ``stroke-width``, ``class_`` becomes
        ``class``; numbers are rounded to a tenth, and None leaves the
        attribute out.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(child if isinstance(child, Markup) else escape(clean_html(child)) for child in children)
    return Markup(f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>")


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{round(value, 1) + 0.0:g}" if math.isfinite(value) else "0"
    return clean_html(value)
