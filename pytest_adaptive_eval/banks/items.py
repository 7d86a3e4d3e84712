"""Read one item of a bank from its JSON text, and refuse one that cannot be asked or graded."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec

from pytest_adaptive_eval.banks.code import CODE, calls_of_item, grade_code
from pytest_adaptive_eval.checks import check_faults, unique_keys
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.graders.kind import grader_kinds
from pytest_adaptive_eval.items.grading import JUDGE, LimitedGrader, needs_judge
from pytest_adaptive_eval.items.item import MOST_CHARACTERS, Grader, Item, named_choice
from pytest_adaptive_eval.items.likelihood import TEXT_SCORINGS, no_text_grade
from pytest_adaptive_eval.items.presentation import CHOICES_SHOWN
from pytest_adaptive_eval.text import similar


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of an item's JSON object; the answer may be a number, and one category a text."""

    id: str = ""
    prompt: str = ""
    answer: str | int | float | dict[str, Any] | list[str | int | float | dict[str, Any]] = ""
    grader: str | msgspec.UnsetType = msgspec.UNSET
    images: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    category: str | tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    turns: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    meta: dict[str, Any] = {}

    @property
    def answers(self) -> list[str]:
        """The accepted answers as texts; a list of calls of tools, or of none, is one answer."""
        is_list_of_calls = self.grader == "calls" and all(isinstance(entry, dict) for entry in _listed(self.answer))
        if is_list_of_calls:
            entries = [self.answer]
        else:
            entries = _listed(self.answer)
        return [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]


def _listed(answer: Any) -> list[Any]:
    if isinstance(answer, list):
        return answer
    return [answer]


_TRUTH = 'expected a text or a number; write "yes" or "no", and "grader": "yesno"'
GONE_EXPRESSION = "answer_expression"  #: Key of ``meta`` that marked values to redraw.
#: Key of an item's ``meta`` that allows an answer that accepts nearly any text.
LENIENT = "lenient"

_ID = re.compile(r"(?!.*::)[^\s\[\]]{1,120}")
_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp"}
#: Graders for a caller that does not grade generated items.
NO_TASKS: Mapping[str, Grader] = MappingProxyType({})


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
    fields = _fields(text, where)
    check_faults(_id_faults(fields.id), where, BankError)
    where = f"{where}: item {fields.id!r}"
    if _has_id_alone(fields):  # as for a harness, which knows what its items ask
        fields.meta = {**fields.meta, "textless": True}
    textless = fields.meta.get("textless") is True  # a bank from responses alone has no texts
    default = "choice" if fields.choices else "exact"
    if fields.grader is msgspec.UNSET:
        grader = default
    else:
        grader = str(fields.grader)
    check_faults(_question_faults(fields, textless=textless), where, BankError)
    if grader in grader_kinds() and not (textless or "".join(fields.answers).strip()):
        raise BankError(f'{where} has no answer, and the grader {grader!r} needs one: add "answer"')
    answer: Any = fields.answers if len(fields.answers) > 1 else fields.answers[0]
    if grader == "task":
        custom = tasks.get(fields.id.partition("-")[0])
    else:
        custom = _custom_grader(grader, where, graders)
    item = Item(
        id=fields.id,
        prompt=fields.prompt,
        answer=answer,
        grader=grader,
        images=fields.images,
        choices=fields.choices,
        category=(fields.category,) if isinstance(fields.category, str) else fields.category,
        formats=fields.formats or (("image+text",) if fields.images else ("text",)),
        messages=tuple(map(MappingProxyType, fields.messages)),
        meta=MappingProxyType(fields.meta),
        custom=custom,
        root=root,
        likelihood=TEXT_SCORINGS.get(grader),
        turns=fields.turns,
        tools=tuple(map(MappingProxyType, fields.tools)),
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


def _has_id_alone(fields: _Fields) -> bool:
    """Return whether an item asks and expects nothing: it has an id, and at most a category and metadata."""
    said = (fields.prompt, fields.messages, fields.images, fields.choices, fields.turns, fields.tools, fields.answer)
    return bool(fields.id) and not any(said) and fields.grader is msgspec.UNSET


def _fields(text: bytes | str, where: str) -> _Fields:
    """Return the fields of an item's JSON object."""
    try:
        data = json.loads(text, object_pairs_hook=unique_keys)
        if isinstance(data, dict) and isinstance(data.get("answer"), bool):
            raise BankError(f"{where}: the answer is {json.dumps(data['answer'])}, {_TRUTH}")
        return msgspec.convert(data, _Fields)
    except UnicodeDecodeError:
        raise BankError(f"{where}: not UTF-8 text; save the file as UTF-8") from None
    except msgspec.ValidationError as error:
        names = ", ".join(_Fields.__struct_fields__)
        raise BankError(
            f"{where}: {error}; the fields of an item are {names}, and your own go under meta. A file with other "
            "fields becomes a bank by `adaptive-eval import`"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BankError(f"{where}: not a JSON object ({error}); one item a line is expected") from None


def _id_faults(item_id: str) -> Iterator[str]:
    if not item_id:
        yield (
            'the question has no id, which names its test: write one, such as "id": "q1", or let '
            "`adaptive-eval import` number the questions of the file"
        )
    if not is_item_id(item_id):
        yield (
            f"id {item_id!r:.80} cannot name a test: 1 to 120 printable characters without spaces, square brackets or "
            "two colons in a row are expected"
        )


def _question_faults(fields: _Fields, *, textless: bool) -> Iterator[str]:
    """Yield what is wrong with the question of an item, the first that matters first."""
    if not (textless or fields.prompt or fields.messages or fields.images):
        yield "no prompt, messages or images; add one"
    yield from _message_faults(fields.messages)
    yield from _turn_faults(fields)
    yield from _image_faults(fields.images)
    yield from _tool_faults(fields)
    yield from _meta_faults(fields.meta)
    for answer in fields.answers:
        if answer in ("NaN", "Infinity", "-Infinity") and not isinstance(fields.answer, str):
            yield f"answer is {answer}, expected a number or a text"
        if isinstance(fields.answer, list) and not answer.strip():
            yield "an answer of several is empty; leave it out"


def _meta_faults(meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield keys of ``meta`` that the package acts on and that have another value than expected."""
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
        if not isinstance(message.get("role"), str) or "content" not in message:
            yield f'message {message!r:.80}, expected {{"role": ..., "content": ...}}'
        elif not isinstance(message["content"], str | list):
            yield f"the content {message['content']!r:.80} of a message, expected a text or parts"


def _turn_faults(fields: _Fields) -> Iterator[str]:
    """Yield further prompts that are empty, too long, or without an earlier prompt."""
    if not all(turn.strip() for turn in fields.turns):
        yield f"turns is {fields.turns!r:.80}, expected a list of texts, the further prompts of the user"
    if fields.turns and not (fields.prompt or fields.messages):
        yield "turns follow a prompt or messages, and the item has neither; add the first prompt"
    length = sum(map(len, fields.turns))
    if length > MOST_CHARACTERS:
        yield f"turns have {length} characters, at most {MOST_CHARACTERS} are possible; shorten them"


def _tool_faults(fields: _Fields) -> Iterator[str]:
    """Yield tools without a name, without a grader that is written, and of an item with turns or choices."""
    if fields.tools and fields.grader is msgspec.UNSET:
        yield 'tools and no grader; write "grader": "calls", which compares the calls of an answer with the key'
    for tool in fields.tools:
        function = tool.get("function")
        if not (isinstance(function, dict) and isinstance(function.get("name"), str)):
            yield (
                f'tool {tool!r:.80}, expected {{"type": "function", "function": {{"name": ..., "parameters": ...}}}}'
            )
    if fields.tools and fields.turns:
        yield "turns and tools exclude each other: no tool is executed, so nothing follows a call"


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
        graders = (*grader_kinds(), CODE, JUDGE, *TEXT_SCORINGS)
        raise BankError(
            f"{where}: grader {grader!r:.80} is not known; {similar(grader, graders)}use {', '.join(graders)}, task or "
            "python:module:function"
        )
    return None


def _answer_faults(item: Item) -> Iterator[str]:
    """Yield expected answers that no answer can match, or wrong answers match too, if `meta` does not allow it."""
    kind = grader_kinds().get(item.grader)
    if kind is None:
        return
    for answer in item.answers:
        try:
            why = kind.check(item, answer)
            if why or item.meta.get(LENIENT, False):
                lenient = None
            else:
                lenient = kind.leniency(item, answer)
        except TimeoutError:
            why = ""
            lenient = None
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
                f"the answer {answer!r:.80} {lenient.problem}; wrong answers would count as right: "
                f'{lenient.fix}, or allow it with "meta": {{"{LENIENT}": true}}'
            )
    are_distinct = len(set(item.choices)) == len(item.choices)
    right = None
    if item.grader == "choice" and not are_distinct:
        right = named_choice(item)
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
    match = re.fullmatch(r"python:(?P<module>[^:]+):(?P<function>[^:]+)", name)
    if match is None:
        raise BankError(f"{where} {name!r}, expected python:module:function")
    module = match["module"]
    if module not in trusted:
        raise BankError(
            f"{where} {name!r} would run code from {module!r}, which is not trusted; if it is yours, add it "
            f"to the ini setting adaptive_eval_graders"
        )
    try:
        loaded: Callable[..., Any] = getattr(importlib.import_module(module), match["function"])
    except Exception as error:  # whatever the user's module raises
        raise BankError(f"{where} {name!r} cannot be loaded: {error}") from error
    if not callable(loaded):
        raise BankError(f"{where} {name!r} is {type(loaded).__name__}, expected a function")
    return loaded
