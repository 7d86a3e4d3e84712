r"""Foreign text for HTML, and elements whose content cannot end them."""

from __future__ import annotations

import math
import re
import unicodedata
from html import escape
from typing import Any, Self

from pytest_adaptive_eval.api_keys import without_keys
from pytest_adaptive_eval.text import clean_xml

#: Parts of a text that belong on one line.
_TOGETHER = re.compile(r"\[[^\[\] ]{1,12} [^\[\] ]{1,12}\]| ± (?=[\d.])|(?<=\d) (?=%|s\b|\d{3}\b)|>= (?=[\d.-])")
#: Shown although Python calls them not printable: line ends, tabs, and the joiners that scripts and emoji need.
_ALLOWED = "\n\t\u200c\u200d"


class Markup(str):
    """Finished markup, which `tag` and jinja2 insert as it is; they escape any other text."""

    __slots__ = ()

    def __html__(self) -> Self:
        """Return the markup itself, by jinja2's protocol."""
        return self


def clean_html(text: object, limit: int | None = None) -> str:
    r"""Return text in which every character is visible, not yet escaped.

    Controls, lone surrogates and invisible characters, such as direction marks, are shown as
    their escape, such as ``\u202e``.

    Args:
        limit: Characters kept; a longer text ends with the number of characters left out.
    """
    whole = without_keys(str(text))
    if limit is None:
        cut = 0
    else:
        cut = max(len(whole) - limit, 0)
    visible = clean_xml(whole[:limit])
    if not visible.isprintable():
        visible = "".join(map(_visible, visible))
    if cut:
        return f"{visible}… ({cut:,} more characters)"
    return visible


def _visible(character: str) -> str:
    """Return a character, or its escape if a reader could not see it."""
    if character.isprintable() or character in _ALLOWED or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def unbroken(text: Any) -> Any:
    """Return text in which no line ends within an interval or between a number and its sign or unit.

    Finished markup is returned as it is.
    """
    if isinstance(text, Markup):
        return text
    return _TOGETHER.sub(lambda found: found[0].replace(" ", "\u00a0"), str(text))


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element.

    Args:
        children: `Markup` is inserted as it is, any other text cleaned and escaped.
        attributes: ``stroke_width`` becomes ``stroke-width``, ``class_`` becomes ``class``; numbers are rounded to a
            tenth, and None leaves the attribute out.
    """
    start = f"<{name}"
    for key, value in attributes.items():
        if value is not None:
            attribute = key.rstrip("_").replace("_", "-")
            start += f' {attribute}="{escape(_value(value))}"'
    texts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            texts.append(child)
        else:
            texts.append(escape(clean_html(child)))
    inner = "".join(texts)
    if inner:
        return Markup(f"{start}>{inner}</{name}>")
    return Markup(f"{start}/>")


def svg(
    key: str, title: str, description: str, size: tuple[float, float], *parts: Markup, **attributes: object
) -> Markup:
    """Return a drawing with a title and a description for readers who cannot see it.

    Args:
        key: Prefix of its ids, of letters and digits.
        size: Width and height in units of the drawing.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{key}-t"),
        tag("desc", description, id=f"{key}-d"),
        *parts,
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        **attributes,
    )


def _value(value: object) -> str:
    if isinstance(value, float):
        if math.isfinite(value):
            return f"{round(value, 1) + 0.0:g}"
        return "0"
    return clean_html(value)
