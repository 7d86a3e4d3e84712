"""The question in a logged sample of lm-evaluation-harness, as the model was asked it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.items.responses import LoggedQuestion

#: Fields of a document that are ids.
_ID = re.compile(r"(?:.*_)?(?:id|idx|key|index|uid|qid|pid|name|number)", re.IGNORECASE)
#: Longest id.
_LONGEST = 120


def logged_question(sample: Mapping[str, Any]) -> LoggedQuestion | None:
    """Return the question of a sample; None if its requests have different contexts, or none.

    The prompt is the context with its examples. Several continuations of one context are choices.
    """
    requests = _requests(sample.get("arguments"))
    contexts = {context for context, _ in requests}
    if len(contexts) != 1 or not (context := contexts.pop()):
        return None
    continuations = [continuation for _, continuation in requests]
    target = sample.get("target")
    if isinstance(continuations[0], str) and len(requests) > 1:
        choices = tuple(str(continuation).strip() for continuation in continuations)
        answers = _right_choice(target, choices)
    elif isinstance(continuations[0], str):
        choices, answers = (), (continuations[0].strip(),)
    else:
        texts = target if isinstance(target, list) else [target]
        choices, answers = (), tuple(str(text).strip() for text in texts if text not in (None, ""))
    chat = _chat(context)
    return LoggedQuestion(
        prompt="" if chat else context, messages=chat, choices=choices, answers=answers, names=_names(sample)
    )


def _requests(arguments: Any) -> list[tuple[str, Any]]:
    """Return context and continuation, or settings, of each request; both layouts of the tool are read."""
    if isinstance(arguments, Mapping):
        pairs: list[Any] = [
            [each.get("arg_0"), each.get("arg_1")] for each in arguments.values() if isinstance(each, Mapping)
        ]
    else:
        pairs = arguments if isinstance(arguments, list) else []
    requests = [(pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) >= 2]
    return requests if all(isinstance(context, str) for context, _ in requests) else []


def _right_choice(target: Any, choices: Sequence[str]) -> tuple[str, ...]:
    """Return the letter of the right choice, which the target names by number or by text."""
    text = str(target).strip()
    if text in choices and not (text.isdecimal() and int(text) < len(choices)):
        index = choices.index(text)
    elif text.isdecimal() and int(text) < len(choices):
        index = int(text)
    else:
        return ()
    return (chr(ord("A") + index),) if index < 26 else ()


def _chat(context: str) -> tuple[Mapping[str, Any], ...]:
    """Return the messages of a context that is a chat in JSON; none for a plain text."""
    if not context.lstrip().startswith('[{"role"'):
        return ()
    try:
        messages = json.loads(context)
    except ValueError:
        return ()
    fits = all(isinstance(m, dict) and isinstance(m.get("content"), str) and "role" in m for m in messages)
    return tuple({"role": str(m["role"]), "content": m["content"]} for m in messages) if fits else ()


def _names(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids in a sample by their field, such as ``doc_id`` and ``doc.id``."""
    document = sample.get("doc")
    fields = {f"doc.{key}": value for key, value in document.items()} if isinstance(document, Mapping) else {}
    named = {key: value for key, value in fields.items() if _ID.fullmatch(key.removeprefix("doc."))}
    ids = {"doc_id": sample.get("doc_id"), **named}
    return {
        key: str(value)
        for key, value in ids.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) <= _LONGEST
    }
