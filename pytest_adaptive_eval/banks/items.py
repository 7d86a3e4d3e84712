"""Read one item of a bank from its JSON text, and refuse one that cannot be asked or graded."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.banks.code import CODE, calls_of_item, grade_code
from pytest_adaptive_eval.checks import check_faults, unique_keys
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.graders.kind import grader_kinds
from pytest_adaptive_eval.items.grading import JUDGE, LimitedGrader, needs_judge
from pytest_adaptive_eval.items.item import MOST_CHARACTERS, Grader, Item, named_choice
from pytest_adaptive_eval.items.likelihood import TEXT_SCORINGS, no_text_grade
from pytest_adaptive_eval.items.presentation import CHOICES_SHOWN

#: Fields of an item's JSON object and the type of each.
ITEM_FIELDS: MappingProxyType[str, type] = MappingProxyType(
    {
        "id": str,
        "prompt": str,
        "answer": str,
        "grader": str,
        "images": list,
        "choices": list,
        "category": list,
        "formats": list,
        "messages": list,
        "turns": list,
        "meta": dict,
    }
)

#: Key of an item's ``meta`` that allows an answer that accepts nearly any text.
GONE_EXPRESSION = "answer_expression"  #: Key of ``meta`` that marked values to redraw.
LENIENT = "lenient"

_ID = re.compile(r"(?!.*::)[^\s\[\]]{1,120}")
_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp"}
#: Graders for a caller that does not grade generated items.
NO_TASKS: Mapping[str, Grader] = MappingProxyType({})
_WORDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def is_item_id(text: str) -> bool:
    """Return whether a text can be the id of an item, which names a test."""
    return text.isprintable() and _ID.fullmatch(text) is not None


def parse_item(
    text: bytes | str, where: str, root: str = "", graders: Sequence[str] = (), tasks: Mapping[str, Grader] = NO_TASKS
) -> Item:
    """Parse one item from its JSON text.

    Args:
        root: Folder that image names are relative to.
        graders: Modules whose functions may grade (``python:module:function``).
        tasks: Grader by task family, for items whose grader is ``task``. Without it, such items can be read but not
            graded.

    Raises:
        BankError: Malformed JSON, a missing or unknown field, or a value of the wrong type.
    """
    data = _fields(text, where)
    if "id" not in data:
        raise BankError(
            f"{where}: the question has no id, which names its test: write one, such as "
            '"id": "q1", or let `adaptive-eval import` number the questions of the file'
        )
    item_id = data["id"]
    if not is_item_id(item_id):
        raise BankError(
            f"{where}: id {item_id!r:.80} cannot name a test: 1 to 120 printable characters without spaces, "
            "square brackets or two colons in a row are expected"
        )
    where = f"{where}: item {item_id!r}"
    prompt, meta = data.get("prompt", ""), data.get("meta", {})
    textless = meta.get("textless") is True  # a bank from responses alone has no texts
    check_faults(_question_faults(data, textless), where, BankError)
    grader = data.get("grader", "choice" if data.get("choices") else "exact")
    if grader in grader_kinds() and not (textless or "".join(data.get("answer", "")).strip()):
        raise BankError(f"{where} has no answer, and the grader {grader!r} needs one")
    custom = tasks.get(item_id.partition("-")[0]) if grader == "task" else _custom_grader(grader, where, graders)
    item = Item(
        id=item_id,
        prompt=prompt,
        answer=data.get("answer", ""),
        grader=grader,
        images=tuple(data.get("images", ())),
        choices=tuple(data.get("choices", ())),
        category=tuple(data.get("category", ())),
        formats=tuple(data.get("formats", ())) or (("image+text",) if data.get("images") else ("text",)),
        messages=tuple(MappingProxyType(m) for m in data.get("messages", ())),
        meta=MappingProxyType(meta),
        custom=custom,
        root=root,
        likelihood=TEXT_SCORINGS.get(grader),
        turns=tuple(data.get("turns", ())),
    )
    if not textless:
        try:
            _ = item.continuations  # an item that its grader scores by likelihood has a text
        except BankError as error:
            raise BankError(f"{where}{str(error).removeprefix(f'item {item.id!r}')}") from None
        check_faults(_answer_faults(item), where, BankError)
        if grader == CODE:
            calls_of_item(item)
    return item


def _fields(text: bytes | str, where: str) -> dict[str, Any]:
    """Return the fields of an item's JSON object, with their types checked."""
    try:
        data = json.loads(text, object_pairs_hook=unique_keys)
    except UnicodeDecodeError:
        raise BankError(f"{where}: not UTF-8 text; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BankError(f"{where}: not a JSON object ({error}); one item a line is expected") from None
    if not isinstance(data, dict):
        raise BankError(f"{where}: found {type(data).__name__}, expected a JSON object with id, prompt and answer")
    if not data.keys() <= ITEM_FIELDS.keys():
        raise BankError(
            f"{where}: unknown field {min(data.keys() - ITEM_FIELDS.keys())!r}; known are {', '.join(ITEM_FIELDS)}. "
            "Put your own fields under meta"
        )
    for name, value in data.items():
        if not isinstance(value, ITEM_FIELDS[name]):
            data[name] = _converted(name, value, where)
    return data


def _converted(name: str, value: Any, where: str) -> str | list[str]:
    """Return a number as an answer, a list of answers, or one category in a list; refuse other values."""
    if name == "answer" and _is_number(value):
        return json.dumps(value)
    if name == "answer" and isinstance(value, list) and value:
        return [_one_answer(entry, where) for entry in value]
    if name == "category" and isinstance(value, str):
        return [value]
    raise BankError(f"{where}: {name} is {value!r:.80}, expected {_WORDS[ITEM_FIELDS[name]]}")


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that can be an answer: no truth value, NaN or infinity."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _one_answer(value: Any, where: str) -> str:
    """Return one of several accepted answers."""
    if _is_number(value):
        return json.dumps(value)
    if not isinstance(value, str) or not value.strip():
        raise BankError(f"{where}: answer has {value!r:.80} in its list, expected strings that are not empty")
    return value


def _question_faults(data: Mapping[str, Any], textless: bool) -> Iterator[str]:
    """Yield what is wrong with the question of an item, the first that matters first."""
    if not (textless or data.get("prompt") or data.get("messages") or data.get("images")):
        yield "no prompt, messages or images; add one"
    for name in ("images", "choices", "category", "formats"):
        if not all(isinstance(value, str) for value in data.get(name, ())):
            yield f"{name} is {data[name]!r:.80}, expected a list of strings"
    yield from _message_faults(data.get("messages", []))
    yield from _turn_faults(data)
    yield from _image_faults(data.get("images", []))
    meta = data.get("meta", {})
    max_tokens = meta.get("max_tokens", 1)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        yield f"meta.max_tokens is {max_tokens!r:.80}, expected a whole number of at least 1"
    for name, default in ((CHOICES_SHOWN, True), (LENIENT, False)):
        value = meta.get(name, default)
        if not isinstance(value, bool):
            yield f"meta.{name} is {value!r:.80}, expected true or false"
    if GONE_EXPRESSION in meta:
        yield f"meta.{GONE_EXPRESSION} is gone: write the values, and leave the key out"


def _message_faults(messages: Sequence[Any]) -> Iterator[str]:
    """Yield messages without a role, or without content that is a text or parts."""
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str) or "content" not in message:
            yield f'message {message!r:.80}, expected {{"role": ..., "content": ...}}'
        elif not isinstance(message["content"], str | list):
            yield f"the content {message['content']!r:.80} of a message, expected a text or parts"


def _turn_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield further prompts that are not texts, too long, or without an earlier prompt."""
    turns = data.get("turns", [])
    if not all(isinstance(turn, str) and turn.strip() for turn in turns):
        yield f"turns is {turns!r:.80}, expected a list of texts, the further prompts of the user"
    if turns and not (data.get("prompt") or data.get("messages")):
        yield "turns follow a prompt or messages, and the item has neither; add the first prompt"
    length = sum(map(len, turns))
    if length > MOST_CHARACTERS:
        yield f"turns have {length} characters, at most {MOST_CHARACTERS} are possible; shorten them"


def _image_faults(images: Sequence[str]) -> Iterator[str]:
    """Yield image names outside the bank's folder, or without an image suffix."""
    for image in images:
        path = PurePosixPath(image)
        if not image.isprintable():
            yield f"the image's name {image!r:.80} has unprintable characters; rename the file"
        if path.is_absolute() or ".." in path.parts or "\\" in image or "://" in image:
            yield f"image {image!r} lies outside the bank's folder; copy it into the bank"
        if path.suffix.lower() not in _IMAGE_SUFFIXES:
            yield f"image {image!r} is not one of {', '.join(sorted(_IMAGE_SUFFIXES))}"


def _custom_grader(grader: str, where: str, trusted: Sequence[str]) -> Grader | None:
    """Return the function of a grader by name, or None for graders that the item applies itself."""
    if grader.startswith("python:"):
        return LimitedGrader(trusted_function(grader, f"{where}: grader", trusted))
    if grader in TEXT_SCORINGS:
        return no_text_grade
    if grader == CODE:
        return grade_code
    if grader == JUDGE:
        return needs_judge
    if grader not in grader_kinds():
        graders = ", ".join((*grader_kinds(), CODE, JUDGE, *TEXT_SCORINGS))
        raise BankError(f"{where}: grader {grader!r:.80} is not known; use {graders}, task or python:module:function")
    return None


def _answer_faults(item: Item) -> Iterator[str]:
    """Yield expected answers that no answer can match, or wrong answers match too, if `meta` does not allow it."""
    kind = grader_kinds().get(item.grader)
    if kind is None:
        return
    for answer in item.answers:
        try:
            why = kind.check(item, answer)
            lenient = None if why or item.meta.get(LENIENT, False) else kind.leniency(item, answer)
        except TimeoutError:
            why, lenient = "", None
            yield (
                f"the search for the pattern {answer!r:.80} does not end in time on a plain text; write it without "
                "repetitions inside of repetitions"
            )
        except ValueError as error:
            yield str(error)
        if why:
            yield f"the answer {answer!r:.80} {why}"
        if lenient is not None:
            yield (
                f"the answer {answer!r:.80} {lenient.problem}, so that wrong answers would count as right: "
                f'{lenient.fix}, or allow it with "meta": {{"{LENIENT}": true}}'
            )
    are_distinct = len(set(item.choices)) == len(item.choices)
    right = named_choice(item) if item.grader == "choice" and not are_distinct else None
    if right is not None and item.choices.count(item.choices[right]) > 1:
        yield (
            f"the right choice, {item.choices[right]!r:.80}, appears twice, and only one of the two would count "
            "as right; remove one"
        )


def trusted_function(name: str, where: str, trusted: Sequence[str]) -> Callable[..., Any]:
    """Return the user's function of the name ``python:module:function``.

    Raises:
        BankError: The name is malformed, its module is not trusted, or it has no such function.
    """
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != "python":
        raise BankError(f"{where} {name!r}, expected python:module:function")
    _, module, function = parts
    if module not in trusted:
        raise BankError(
            f"{where} {name!r} would run code from {module!r}, which is not trusted; if it is yours, add it "
            f"to the ini setting adaptive_eval_graders"
        )
    try:
        function_object = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the user's module raises
        raise BankError(f"{where} {name!r} cannot be loaded: {error}") from error
    if not callable(function_object):
        raise BankError(f"{where} {name!r} is {type(function_object).__name__}, expected a function")
    loaded: Callable[..., Any] = function_object
    return loaded
