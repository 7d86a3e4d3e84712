"""What a model thinks aloud before it answers, told apart from its answer."""

from __future__ import annotations

import re

__all__ = ["split_reasoning"]

#: The two spellings in use; a model that is switched to thinking by its template only writes the closing tag.
_TAG = re.compile(r"<(/?)(?:think|thinking)>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Split think spans from a completion.

    Parameters
    ----------
    text : str
        As generated.

    Returns
    -------
    answer : str
        Everything outside the spans; as it came where there is none, else without white space around it.
    reasoning : str
        Everything inside them, one span a paragraph.  A closing tag without an opening one ends a span that
        began with the text: the template had written the opening.
    closed : bool
        False when the last span never ended: then there is no answer behind it.
    """
    answer: list[str] = []
    reasoning: list[str] = []
    depth, at = 0, 0
    for tag in _TAG.finditer(text):
        piece, at = text[at : tag.start()], tag.end()
        if tag[1] and not depth and not reasoning:
            reasoning.append("".join([*answer, piece]))
            answer.clear()
        else:
            (reasoning if depth else answer).append(piece)
        depth = max(0, depth - 1) if tag[1] else depth + 1
    if at == 0:
        return text, "", True
    (reasoning if depth else answer).append(text[at:])
    thought = "\n\n".join(part.strip() for part in reasoning if part.strip())
    return "".join(answer).strip(), thought, depth == 0
