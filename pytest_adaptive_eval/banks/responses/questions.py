"""Questions of logs: from the values of a row, and to the items of a bank."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import LoggedQuestion, Reply, Responses
from pytest_adaptive_eval.text import Tell, counted

#: Replies that a grader is tried on, for each group of items.
_TRIED = 400
#: Share of the answers on which a grader must agree with the logged scores; below it the note warns.
_AGREEING = 0.9
#: Forms of right answers, and the graders that may grade them, the likeliest first.
_GRADERS = ((r"\(?[A-J]\)?", ("choice", "exact")), (r"[-+$]?[\d,]*\.?\d+%?", ("numeric", "exact")))
#: Characters from which a text holds an image itself.
_ENCODED = 1000


def inner(data: Any, *keys: str) -> Any:
    """Return the value under keys, each within the object before; None if there is none."""
    for key in keys:
        if isinstance(data, Mapping):
            data = data.get(key)
        else:
            data = None
    return data


def texts(value: Any) -> tuple[str, ...]:
    """Return a value as texts: each entry of a list, the values of an object, or the value alone."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = value.get("text", list(value.values()))  # {"text": [...], "label": [...]}
    return tuple(
        entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in _entries(value)
    )


def _entries(value: Any) -> Sequence[Any]:
    """Return a list as it is, no value as an empty list, and another value in a list."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    return [value]


def as_question(values: Mapping[str, Any], file: Path) -> LoggedQuestion | None:
    """Return the question in the values of a row by field; None without a text."""
    prompt, messages = _prompt(values.get("question"))
    if not (prompt or messages):
        return None
    choices = texts(values.get("choices"))
    target = values.get("target")
    if type(target) is int and 0 <= target < min(len(choices), 26):
        target = chr(ord("A") + target)  # the number of a choice
    answers = []
    for text in texts(str(target) if isinstance(target, bool) else target):
        if text.strip():
            answers.append(text)
    images = [_image(entry, file) for entry in _entries(values.get("images"))]
    return LoggedQuestion(
        prompt=prompt,
        messages=messages,
        choices=choices,
        answers=tuple(dict.fromkeys(answers)),
        images=tuple([image for image in images if image is not None]),
        category=str(values["category"]) if isinstance(values.get("category"), str | int) else "",
        names=values.get("names", {}),
    )


def _prompt(question: Any) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Return a question as a text, or as the messages of a chat up to the last of the user."""
    if isinstance(question, str):
        return question, ()
    if not isinstance(question, list) or not all(isinstance(m, Mapping) and "role" in m for m in question):
        return "", ()
    chat = []
    for m in question:
        chat.append({"role": str(m["role"]), "content": m.get("content") or ""})
    while chat and chat[-1]["role"] in ("assistant", "tool"):
        chat.pop()
    if len(chat) == 1 and isinstance(chat[0]["content"], str):
        return chat[0]["content"], ()
    return "", tuple(chat)


def _image(entry: Any, file: Path) -> str | bytes | Path | None:
    """Return an image of a row: its content, or its path; nothing in place of a path outside of the log's folder."""
    if isinstance(entry, Mapping):
        content = entry.get("bytes") or entry.get("path")
    else:
        content = entry
    if isinstance(content, str) and len(content) < _ENCODED and not content.lower().startswith("data:image/"):
        path = (file.parent / content).resolve()
        if path.is_relative_to(file.parent.resolve()):
            return path
        return b""
    if isinstance(content, str | bytes):
        return content
    return None


def grade_reply(values: Mapping[str, Any], items: Mapping[str, Item] | None) -> float | None:
    """Return the score of an answer by one's own item, or by the target of its row; None where neither is there."""
    answer = values.get("answer")
    if answer is None:
        return None
    if isinstance(answer, str):
        text = answer
    else:
        text = json.dumps(answer, ensure_ascii=False)
    if items is not None:
        item = items.get(str(values.get("item")))
        if item is None:
            return None
        return _graded(item, text)
    question = as_question({"question": "?", "choices": values.get("choices"), "target": values.get("target")}, Path())
    if question is None or not question.answers:
        return None
    return _graded(_item("q", question, _candidates(question)[0], (), ""), text)


def _graded(item: Item, text: str) -> float | None:
    try:
        return item.grade(text)
    except (Unscored, BankError):
        return None


def items_of(responses: Responses, folder: Path, note: Tell) -> list[Item]:
    """Return the items whose question and right answer are in the logs, with their images in `folder`.

    Items of a task are graded by the grader that agrees best with the logged scores; a note gives the agreement.

    Args:
        folder: Exists; images are written to it.
        note: Called with sentences on graders and on what is left out.
    """
    groups: dict[tuple[str, bool, Sequence[str]], dict[str, LoggedQuestion]] = {}
    left_out: Counter[str] = Counter()
    for name, question in responses.questions.items():
        if not question.answers:
            left_out["without a right answer"] += 1
        elif question.choices and len(question.answers) > 1:
            left_out["with several right choices"] += 1
        else:
            if ":" in name:
                task = name.partition(":")[0]
            else:
                task = ""
            groups.setdefault((task, bool(question.choices), _form(question)), {})[name] = question
    items = []
    store = ImageStore(folder, [])
    for questions in groups.values():
        grader = _choose_grader(questions, responses.replies, note)
        for name, question in questions.items():
            try:
                images = []
                for i in question.images:
                    images.append(store.add(read_regular(i) if isinstance(i, Path) else i))
                items.append(_item(name, question, grader, images, str(folder)))
            except (BankError, DatasetError, OSError) as error:
                reason = re.sub(r"\A.*?: item '[^']*'(?:: | )", "", str(error))
                left_out[f"with a question that cannot be asked ({reason:.120})"] += 1
    for reason, count in left_out.items():
        note(f"left out: {counted(count, 'item')} {reason}")
    return items


def _form(question: LoggedQuestion) -> Sequence[str]:
    """Return the graders that fit the form of all right answers: letters, numbers or texts."""
    for pattern, graders in _GRADERS:
        if all(re.fullmatch(pattern, answer.strip()) for answer in question.answers):
            return graders
    return ("exact", "contains")


def _candidates(question: LoggedQuestion) -> Sequence[str]:
    """Return the graders that may grade a question, the likeliest first."""
    if question.choices:
        return ("choice",)
    return _form(question)


def _choose_grader(questions: Mapping[str, LoggedQuestion], replies: Mapping[str, Sequence[Reply]], note: Tell) -> str:
    """Return the grader that agrees best with the logged scores of the replies."""
    first, question = next(iter(questions.items()))
    tried = []
    for name in questions:
        for reply in replies.get(name, ()):
            tried.append((questions[name], reply))
    tried = [(asked, reply) for asked, reply in tried if reply.score in (0.0, 1.0)][:_TRIED]
    candidates = _candidates(question)
    agreed = {grader: sum(_agrees(*each, grader) for each in tried) for grader in candidates}
    best = max(candidates, key=lambda grader: agreed[grader])
    about = f"{counted(len(questions), 'item')} such as {first!r:.60}: grader {best}"
    if not tried:
        note(f"{about}; the logs hold no answers to check it on")
        return best
    if agreed[best] >= _AGREEING * len(tried):
        warning = ""
    else:
        warning = "; check it before the bank is asked"
    note(f"{about}, which agrees with the logged score of {agreed[best]} of {counted(len(tried), 'answer')}{warning}")
    return best


def _agrees(question: LoggedQuestion, reply: Reply, grader: str) -> bool:
    try:
        return _graded(_item("q", replace(question, images=()), grader, (), ""), reply.text) == reply.score
    except BankError:
        return False


def _item(name: str, question: LoggedQuestion, grader: str, images: Sequence[str], root: str) -> Item:
    """Return a question as an item; raise BankError if it cannot be asked or graded."""
    marks = "() \n" if "choice" in _form(question) else None  # a letter stands without parentheses
    answers = [answer.strip(marks) for answer in question.answers]
    asked: dict[str, Any] = {"prompt": question.prompt}
    if question.messages:
        asked = {"messages": list(map(dict, question.messages))}
    further = {
        "choices": question.choices,
        "category": [question.category] if question.category else [],
        "images": images,
    }
    data = {
        "id": name,
        "grader": grader,
        "answer": answers if len(answers) > 1 and not question.choices else answers[0],
        **asked,
        **{key: list(value) for key, value in further.items() if value},
    }
    return parse_item(json.dumps(data), "the log", root)
