"""Conversations of several turns: each prompt of the user is asked after the answer to the one before.

The answers are kept as one text, the transcript: the first answer, then each further prompt behind its mark, with the
answer to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Characters of all further prompts together, so that a transcript keeps room for the answers.
MOST_CHARACTERS = 8000

_MARK = re.compile(r"\[(?=turn \d)")


def later_turns(turns: Sequence[str]) -> str:
    """Return the further prompts, each behind its mark; empty without any."""
    return "".join(_marked(number, prompt) for number, prompt in enumerate(turns, 2))


def transcript(turns: Sequence[str], answers: Sequence[str], characters: int) -> str:
    """Return the answers to a prompt and its further turns as one text.

    Args:
        turns: Further prompts.
        answers: One more than `turns`.
        characters: Most characters of the text; longer answers are cut, each to the same length.
    """
    room = (characters - len(later_turns(turns))) // len(answers)
    kept = [_MARK.sub("(", answer)[:room] for answer in answers]
    parts = [
        _marked(number, prompt) + answer for number, (prompt, answer) in enumerate(zip(turns, kept[1:], strict=True), 2)
    ]
    return kept[0] + "".join(parts)


def answers_of(turns: Sequence[str], text: str) -> list[str]:
    """Return the answers of a transcript, one more than `turns`; raise ValueError for another text."""
    answers = []
    for number, prompt in enumerate(turns, 2):
        answer, found, text = text.partition(_marked(number, prompt))
        if not found:
            raise ValueError(
                f"the item has {len(turns) + 1} turns, and the text is not its transcript (no mark of turn {number}): "
                "ask the item itself, as model.generate(item), and grade all that it returns"
            )
        answers.append(answer)
    return [*answers, text]


def _marked(number: int, prompt: str) -> str:
    return f"\n\n[turn {number}] {prompt}\n\n"
