"""Questions of logs: from the values of a row, and to the items of a bank."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import LoggedQuestion, Reply, Responses
from pytest_adaptive_eval.text import counted

#: Replies that a grader is tried on, for each group of items.
_TRIED = 400
#: Share of the answers on which a grader must agree with the logged scores; below it the note warns.
_AGREEING = 0.9
#: Graders by the form of the right answers, the likeliest first.
_GRADERS = {"letter": ("choice", "exact"), "number": ("numeric", "exact"), "text": ("exact", "contains")}
_DATA_URL = re.compile(r"data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)


def inner(data: Any, *keys: str) -> Any:
    """Return the value under keys, each within the object before; None if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def texts(value: Any) -> tuple[str, ...]:
    """Return a value as texts: each entry of a list, the values of an object, or the value alone."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = value.get("text", list(value.values()))  # {"text": [...], "label": [...]}
    entries = value if isinstance(value, list | tuple) else [value]
    return tuple(entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries)


def as_question(values: Mapping[str, Any], file: Path) -> LoggedQuestion | None:
    """Return the question in the values of a row by field; None without a text."""
    question = values.get("question")
    prompt, messages = _prompt(question)
    if not (prompt or messages):
        return None
    choices = texts(values.get("choices"))
    return LoggedQuestion(
        prompt=prompt,
        messages=messages,
        choices=choices,
        answers=_answers(values.get("target"), choices),
        images=_images(values.get("images"), file),
        category=str(values["category"]) if isinstance(values.get("category"), str | int) else "",
    )


def _prompt(question: Any) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Return a question as a text, or as the messages of a chat up to the last of the user."""
    if isinstance(question, str):
        return question, ()
    if not isinstance(question, list) or not all(isinstance(m, Mapping) and "role" in m for m in question):
        return "", ()
    chat = [{"role": str(m["role"]), "content": m.get("content") or ""} for m in question]
    while chat and chat[-1]["role"] in ("assistant", "tool"):
        chat.pop()
    if len(chat) == 1 and isinstance(chat[0]["content"], str):
        return chat[0]["content"], ()
    return "", tuple(chat)


def _answers(target: Any, choices: Sequence[str]) -> tuple[str, ...]:
    """Return the accepted answers; the number of a choice becomes its letter."""
    if isinstance(target, bool):
        return (str(target),)
    if isinstance(target, int) and choices and 0 <= target < min(len(choices), 26):
        return (chr(ord("A") + target),)
    return tuple(dict.fromkeys(text for text in texts(target) if text.strip()))


def _images(value: Any, file: Path) -> tuple[str | bytes, ...]:
    """Return the images of a row: contents, data URLs or paths beside the log."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    images: list[str | bytes] = []
    for entry in entries:
        content = (entry.get("bytes") or entry.get("path")) if isinstance(entry, Mapping) else entry
        if isinstance(content, str) and not _DATA_URL.match(content) and len(content) < 1000:
            path = (file.parent / content).resolve()
            content = str(path) if path.is_relative_to(file.parent.resolve()) else b""
        if isinstance(content, str | bytes):
            images.append(content)
    return tuple(images)


def _content(image: str | bytes) -> str | bytes:
    """Return the bytes of an image at a path, or the image as the log holds it."""
    if not image:
        raise DatasetError("an image lies outside of the log's folder")
    if isinstance(image, bytes) or len(image) >= 1000 or _DATA_URL.match(image):
        return image
    try:
        return read_regular(image)
    except OSError as error:
        raise DatasetError(f"an image cannot be read ({error!s:.120})") from None


def grade_reply(values: Mapping[str, Any], items: Mapping[str, Item] | None) -> float | None:
    """Return the score of an answer by one's own item, or by the target of its row; None where neither is there."""
    answer, target = values.get("answer"), values.get("target")
    if answer is None:
        return None
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if items is not None:
        item = items.get(str(values.get("item")))
        return None if item is None else _graded(item, text)
    question = LoggedQuestion("?", choices=texts(values.get("choices")))
    answers = _answers(target, question.choices)
    if not answers:
        return None
    question = replace(question, answers=answers)
    return _graded(_item("q", question, _candidates(question)[0], (), ""), text)


def _graded(item: Item | None, text: str) -> float | None:
    try:
        return None if item is None else item.grade(text)
    except (Unscored, BankError):
        return None


def items_of(responses: Responses, folder: Path, note: Callable[[str], object]) -> list[Item]:
    """Return the items whose question and right answer are in the logs, with their images in `folder`.

    Items of a task are graded by the grader that agrees best with the logged scores; a note gives the agreement.

    Args:
        folder: Exists; images are written to it.
        note: Called with sentences on graders and on what is left out.
    """
    groups: dict[tuple[str, bool, str], dict[str, LoggedQuestion]] = {}
    left_out: Counter[str] = Counter()
    for name, question in responses.questions.items():
        if not question.answers:
            left_out["without a right answer"] += 1
        elif question.choices and len(question.answers) > 1:
            left_out["with several right choices"] += 1
        else:
            task = name.partition(":")[0] if ":" in name else ""
            groups.setdefault((task, bool(question.choices), _form(question.answers)), {})[name] = question
    items: list[Item] = []
    store = ImageStore(folder, [])
    for questions in groups.values():
        grader = _choose_grader(questions, responses.replies, note)
        for name, question in questions.items():
            try:
                images = [store.add(_content(image)) for image in question.images]
                items.append(_item(name, question, grader, images, str(folder)))
            except (BankError, DatasetError) as error:
                reason = re.sub(r"\A.*?: item '[^']*'(?:: | )", "", str(error))
                left_out[f"with a question that cannot be asked ({reason:.120})"] += 1
    for reason, count in left_out.items():
        note(f"left out: {counted(count, 'item')} {reason}")
    return items


def _form(answers: Sequence[str]) -> str:
    """Return the form that answers have: a letter, a number or a text."""
    if all(re.fullmatch(r"\(?[A-J]\)?", answer.strip()) for answer in answers):
        return "letter"
    if all(re.fullmatch(r"[-+$]?[\d,]*\.?\d+%?", answer.strip()) for answer in answers):
        return "number"
    return "text"


def _candidates(question: LoggedQuestion) -> tuple[str, ...]:
    """Return the graders that may grade questions of one form, the likeliest first."""
    return ("choice",) if question.choices else _GRADERS[_form(question.answers)]


def _choose_grader(
    questions: Mapping[str, LoggedQuestion], replies: Mapping[str, Sequence[Reply]], note: Callable[[str], object]
) -> str:
    """Return the grader that agrees best with the logged scores of the replies."""
    first, question = next(iter(questions.items()))
    tried = [(questions[name], reply) for name in questions for reply in replies.get(name, ())]
    tried = [(asked, reply) for asked, reply in tried if reply.score in (0.0, 1.0)][:_TRIED]
    candidates = _candidates(question)
    agreed = {grader: sum(_agrees(*each, grader) for each in tried) for grader in candidates}
    best = max(candidates, key=lambda grader: agreed[grader])
    about = f"{counted(len(questions), 'item')} such as {first!r:.60}: grader {best}"
    if not tried:
        note(f"{about}; the logs hold no answers to check it on")
        return best
    warning = "" if agreed[best] >= _AGREEING * len(tried) else "; check it before the bank is asked"
    note(f"{about}, which agrees with the logged score of {agreed[best]} of {counted(len(tried), 'answer')}{warning}")
    return best


def _agrees(question: LoggedQuestion, reply: Reply, grader: str) -> bool:
    try:
        return _graded(_item("q", replace(question, images=()), grader, (), ""), reply.text) == reply.score
    except BankError:
        return False


def _item(name: str, question: LoggedQuestion, grader: str, images: Sequence[str], root: str) -> Item:
    """Return a question as an item; raise BankError if it cannot be asked or graded."""
    data: dict[str, Any] = {"id": name, **_expected(question, grader)}
    if question.messages:
        data["messages"] = [dict(message) for message in question.messages]
    else:
        data["prompt"] = question.prompt
    if question.choices:
        data["choices"] = list(question.choices)
    if question.category:
        data["category"] = [question.category]
    if images:
        data["images"] = list(images)
    return parse_item(json.dumps(data), "the log", root)


def _expected(question: LoggedQuestion, grader: str) -> dict[str, Any]:
    """Return grader and answers of an item; a letter stands without parentheses."""
    marks = "() \n" if _form(question.answers) == "letter" else None
    answers = [answer.strip(marks) for answer in question.answers]
    return {"grader": grader, "answer": answers if len(answers) > 1 and not question.choices else answers[0]}
