"""Present the items of a bank by a template, with examples, and score them by likelihood if requested."""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import Computed, ItemBank, Mapped
from pytest_adaptive_eval.items.item import Item, named_choice
from pytest_adaptive_eval.items.likelihood import CANDIDATES, TEXT_SCORINGS, ChoiceLikelihood, letters

#: Fields of a template, and those that may end it, by what they show of a choice.
FIELDS, ENDS = ("prompt", "choices", "examples"), MappingProxyType({"answer": "text", "letter": "letter"})
#: The template that changes nothing, with examples before it.
PLAIN = "{examples}{prompt}"
#: Ends of prompts that ask for a line with the answer, or for a letter.
_LINE, _LETTER = re.compile(r"`Answer: <\w+>`\.\s*\Z"), re.compile(r"Answer with the letters? of .*\Z")
#: Key of an item's ``meta`` that says whether its choices are listed after a prompt that lacks them.
CHOICES_SHOWN = "choices_shown"
#: Key of a bank's report with the presentation.
REPORT_KEY = "presentation"
#: Stands between an example and what follows it.
SEPARATOR = "\n\n"


class Template(NamedTuple):
    """A template of prompts.

    Args:
        text: With the fields of `FIELDS` alone.
        delimiter: Comes between a prompt and its choice or answer.
        candidates: A key of `CANDIDATES`.
    """

    text: str
    fields: frozenset[str]
    delimiter: str
    candidates: str


def _with_prompt(template: str) -> str:
    """Return a template with ``{prompt}`` in place of ``{question}``, as other tools call it."""
    parts = list(string.Formatter().parse(template))
    if not any(name == "question" for _, name, _, _ in parts):
        return template
    written = ""
    for text, name, form, conversion in parts:
        written += text.replace("{", "{{").replace("}", "}}")
        if name is None:
            continue
        written += "{prompt" if name == "question" else "{" + name
        if conversion:
            written += f"!{conversion}"
        if form:
            written += f":{form}"
        written += "}"
    return written


def is_template(text: str) -> bool:
    """Return whether a text can be a template and not a file's name."""
    return "{prompt}" in text or "{question}" in text


def parse_template(template: str) -> Template:
    """Return the parts of a template, which may end with a field of `ENDS` after the delimiter.

    Raises:
        ConfigError: A field is unknown, ``{prompt}`` is missing, a field of `ENDS` does not end it, or braces are
            unpaired.
    """
    expected = ", ".join(f"{{{name}}}" for name in (*FIELDS, *ENDS))
    try:
        template = _with_prompt(template)
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template {template!r:.80} is malformed ({error}): write {{{{ and }}}} for braces") from None
    names = [name for _, name, _, _ in parts if name is not None]
    for _, name, form, conversion in parts:
        if name is not None and (name not in (*FIELDS, *ENDS) or form or conversion):
            written = "{" + name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "") + "}"
            raise ConfigError(
                f"template has the field {written}, expected {expected}; write {{{{ and }}}} for braces of the text"
            )
    if "prompt" not in names:
        raise ConfigError(f"template {template!r:.80} has no {{prompt}} and does not name a file; add {{prompt}}")
    fields = frozenset(names) - ENDS.keys()
    ends = [name for name in names if name in ENDS]
    if not ends:
        return Template(template, fields, " ", "letter" if "choices" in fields else "text")
    if len(ends) > 1 or parts[-1][1] != ends[0]:
        raise ConfigError(f"template {template!r:.80} may have {{{ends[0]}}} once, as its end: remove it before")
    before = template.removesuffix(f"{{{ends[0]}}}")
    text = before.rstrip()
    return Template(text, fields, before[len(text) :], ENDS[ends[0]])


def with_choices(item: Item) -> Item:
    """Return an item whose question lists its choices: after a prompt that does not hold the text of each."""
    if not item.choices or item.grader == "yesno" or item.likelihood is not None:
        return item
    if item.messages:
        content = item.messages[-1].get("content")
    else:
        content = ""
    texts = [item.prompt, *item.turns, *(str(message.get("content")) for message in item.messages)]
    asked = " ".join(" ".join(texts).casefold().split())
    if not asked or item.meta.get(CHOICES_SHOWN) is False or all(_is_within(choice, asked) for choice in item.choices):
        return item
    listed = f"\n\n{_listed(item.choices)}"
    plain = item.plain or item
    if item.turns:
        return replace(item, turns=(*item.turns[:-1], item.turns[-1] + listed), plain=plain)
    if not item.messages:
        return replace(item, prompt=item.prompt + listed, plain=plain)
    whole: str | list[Any] = [*(content or ()), {"type": "text", "text": listed.strip()}]
    if isinstance(content, str):
        whole = content + listed
    return replace(item, messages=(*item.messages[:-1], {**item.messages[-1], "content": whole}), plain=plain)


def _is_within(choice: str, asked: str) -> bool:
    """Return whether a text has a choice as words of their own."""
    text = " ".join(choice.casefold().split())
    if text[:1].isascii() and text[:1].isalnum():
        before = r"(?<!\w)"
    else:
        before = ""
    if text[-1:].isascii() and text[-1:].isalnum():
        after = r"(?!\w)"
    else:
        after = ""
    return re.search(f"{before}{re.escape(text)}{after}", asked) is not None


def _listed(choices: Sequence[str]) -> str:
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters(choices), choices, strict=True))


@dataclass(frozen=True, slots=True)
class Example:
    """An answered item."""

    prompt: str
    choices: tuple[str, ...]
    answer: str


def example_of(item: Item) -> Example:
    """Return an item as an example; raise ConfigError if it has no prompt, or no answer that a model could give."""
    index = None
    if item.choices:
        index = named_choice(item)
    if index is not None and _LETTER.search(item.prompt):
        return Example(item.prompt, (), letters(item.choices)[index])
    answer = item.answer if index is None else item.choices[index]
    if item.messages or item.images or not item.prompt:
        raise ConfigError(f"example {item.id!r} has messages or images, or no prompt: give items with a prompt alone")
    if not answer or item.grade(answer) < 1:
        raise ConfigError(
            f"example {item.id!r} expects {answer!r:.80}, which its own grader does not take for a right answer: give "
            "items whose answer is a text to show"
        )
    return Example(item.prompt, item.choices, f"\nAnswer: {answer}" if _LINE.search(item.prompt) else answer)


@dataclass(frozen=True, slots=True)
class Presentation:
    """The form in which items are asked.

    Args:
        template: With fields of `FIELDS`; see `parse_template`.
        examples: Shown before each item, except one with the item's own prompt.
        likelihood: How the likelihoods of choices score an item; None where the model writes an answer.
        delimiter: Separates an example's prompt and its answer, unless the prompt ends with white space.
        candidates: A key of `CANDIDATES`: what an example shows of the choice that is right.
        system: Text of a system message before each item; none if empty.
    """

    template: str = PLAIN
    examples: tuple[Example, ...] = ()
    likelihood: ChoiceLikelihood | None = None
    delimiter: str = " "
    candidates: str = "text"
    system: str = ""

    def present(self, item: Item) -> Item:
        """Return the item as it is asked; raise BankError if it lacks the prompt or choices of the template."""
        if self._lists_choices:
            item = with_choices(item)
        item = self._written(item)
        if self.system:
            item = self._instructed(item)
        if self.likelihood is None or item.likelihood is not None:
            return item
        return replace(item, likelihood=self.likelihood)

    def check(self, item: Item) -> None:
        """Raise BankError if an item cannot be presented, or none of its choices can be right."""
        presented = self.present(item)
        if presented.continuations and presented.custom is None and not any(map(presented.grade, presented.choices)):
            raise BankError(f"item {item.id!r}: none of its choices is graded as right; correct its answer")

    def hides_choices(self, item: Item) -> bool:
        """Return whether a template of one's own leaves out choices that the prompt lacks."""
        if self._lists_choices or self.likelihood is not None:
            return False
        asked = self.present(item)
        return with_choices(asked) is not asked

    @property
    def _lists_choices(self) -> bool:
        """Whether choices come after a prompt that lacks them; likelihoods and templates say otherwise."""
        return self.likelihood is None and self.template == PLAIN

    def _written(self, item: Item) -> Item:
        """Return the item with its prompt in the template."""
        if self.template == PLAIN and not self.examples:
            return item
        if item.messages or item.grader in TEXT_SCORINGS:
            content = "messages" if item.messages else "a text that is scored as it is"
            raise BankError(
                f"item {item.id!r} has {content}, which no template can hold: ask it without template and examples"
            )
        examples = []
        for example in self.examples:
            if self._asked(example) != item.prompt:
                examples.append(example)
        before = "".join(self._example(example) for example in examples)
        prompt = self._filled(item.id, item.prompt, item.choices, before)
        return replace(item, prompt=prompt, plain=item.plain or item)

    def _instructed(self, item: Item) -> Item:
        """Return the item as a chat that begins with the system message."""
        system_message = item.messages and item.messages[0].get("role") in ("system", "developer")
        if system_message or item.likelihood is not None or item.grader in TEXT_SCORINGS:
            content = "a system message of its own" if system_message else "a text that is scored as it is"
            raise BankError(f"item {item.id!r} has {content}: remove system from the evaluation, or ask other items")
        messages = item.messages or ({"role": "user", "content": item.prompt},)
        instructed = ({"role": "system", "content": self.system}, *messages)
        return replace(item, prompt="", messages=instructed, plain=item.plain or item)

    def _asked(self, example: Example) -> str:
        """Return the prompt of an example, with its choices where items list theirs."""
        asked = Item("example", example.prompt, choices=example.choices)
        if self._lists_choices:
            return with_choices(asked).prompt
        return example.prompt

    def _example(self, example: Example) -> str:
        question = self._filled("of an example", self._asked(example), example.choices, "")
        answer = example.answer
        if example.choices:
            answer = CANDIDATES[self.candidates](example.choices)[example.choices.index(answer)]
        if self._asked(example) != example.prompt:
            answer = f"\n{answer}"  # after the list of choices
        if question[-1:].isspace() or answer.startswith("\n"):
            between = ""
        else:
            between = self.delimiter
        return f"{question}{between}{answer}{SEPARATOR}"

    def _filled(self, name: str, prompt: str, choices: Sequence[str], examples: str) -> str:
        listed = _listed(choices)
        if not listed and "choices" in parse_template(self.template).fields:
            raise BankError(
                f"item {name!r} has no choices, and the template has the field {{choices}}: remove it there"
            )
        return self.template.format(prompt=prompt, choices=listed, examples=examples)

    def without_examples(self, prompt: str) -> str:
        """Return the prompt of an item as it is asked without the examples before it."""
        for example in self.examples:
            prompt = prompt.replace(self._example(example), "", 1)
        return prompt

    def to_json(self) -> dict[str, Any]:
        """Return the presentation as JSON data."""
        return {
            "template": self.template,
            "examples": [[example.prompt, list(example.choices), example.answer] for example in self.examples],
            "likelihood": None if self.likelihood is None else self.likelihood.to_json(),
            "delimiter": self.delimiter,
            "candidates": self.candidates,
            **({"system": self.system} if self.system else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Presentation:
        """Return the presentation that `to_json` wrote; raise KeyError, TypeError or ValueError if it is malformed."""
        likelihood = data["likelihood"]
        return cls(
            data["template"],
            tuple(Example(prompt, tuple(choices), answer) for prompt, choices, answer in data["examples"]),
            None if likelihood is None else ChoiceLikelihood(**likelihood),
            data["delimiter"],
            data["candidates"],
            data.get("system", ""),
        )


def presented(bank: ItemBank, presentation: Presentation | None) -> ItemBank:
    """Return the bank as its items are asked, by a presentation with a content hash of its own.

    Without a presentation, choices that a prompt lacks are listed after it. The parameters still describe the items as
    calibrated; errors of replayed interviews do not hold for the new form.
    """
    if bank.report.get("textless"):
        return bank
    if presentation is None:
        return replace(bank, items=Mapped(bank.items, with_choices))
    written = presentation.to_json()
    hashed = json.dumps([bank.content_hash, written], sort_keys=True)
    return replace(
        bank,
        items=Computed(len(bank.items), lambda n: presentation.present(bank.items[n])),
        content_hash=hashlib.sha256(hashed.encode()).hexdigest()[:16],
        report=MappingProxyType({**bank.report, REPORT_KEY: written}),
        conformal=MappingProxyType({}),
    )
