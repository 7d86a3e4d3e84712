"""Split the reasoning of a model from its answer."""

from __future__ import annotations

import re

#: The two spellings in use.  Where a chat template opens the span, the model writes the closing tag alone.
_TAG = re.compile(r"<(/?)(?:think|thinking)>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Split think spans from a completion.

    Args:
        text: Completion as generated.

    Returns:
        answer: Text outside the spans, stripped; the whole text unchanged if there is no span.
        reasoning: Text inside the spans, one paragraph per span. A closing tag without an opening one ends a span that
            began with the text.
        closed: False if the last span does not end; then no answer follows it.
    """
    answer: list[str] = []
    reasoning: list[str] = []
    depth, end = 0, 0
    for tag in _TAG.finditer(text):
        piece, end = text[end : tag.start()], tag.end()
        if tag[1] and not depth and not reasoning:
            reasoning.append("".join([*answer, piece]))
            answer.clear()
        else:
            (reasoning if depth else answer).append(piece)
        depth = max(0, depth - 1) if tag[1] else depth + 1
    if end == 0:
        return text, "", True
    (reasoning if depth else answer).append(text[end:])
    paragraphs = "\n\n".join(part.strip() for part in reasoning if part.strip())
    return "".join(answer).strip(), paragraphs, depth == 0
