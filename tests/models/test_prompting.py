"""Prompts of items, with a tokenizer that shows what it is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.checkpoint.prompting import Prompter

IMAGE: dict[str, Any] = {"type": "image"}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


class Tokenizer:
    """A tokenizer whose tokens are words."""

    name_or_path = "folder"

    def __init__(self, bos: str | None = "<s>", eos: str | None = "</s>", pad: str | None = "<pad>") -> None:
        self.bos_token, self.eos_token, self.pad_token = bos, eos, pad

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[str]]:
        return {"input_ids": ["<s>"] * add_special_tokens + text.split()}


def item(prompt: str = "", images: tuple[str, ...] = (), *messages: dict[str, Any]) -> Item:
    return Item("i", prompt, "7", images=images, messages=messages, formats=("image+text",) if images else ("text",))


def test_without_a_template_the_prompt_is_unchanged() -> None:
    prompter = Prompter(Tokenizer(), None)
    assert prompter.style == "raw"
    assert prompter.text(item(" How many?\n")) == " How many?\n"
    with pytest.raises(BankError, match="has messages, and this checkpoint no chat template"):
        prompter.text(item("", (), {"role": "user", "content": "?"}))
    with pytest.raises(BankError, match="has images, and this checkpoint reads text only"):
        prompter.text(item("?", ("a.png",)))


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        (Tokenizer(), "<s>"),
        (Tokenizer(bos=None), "</s>"),
        (Tokenizer(bos=None, eos=None), "<pad>"),
    ],
)
def test_an_empty_prompt_is_one_token(tokenizer: Tokenizer, expected: str) -> None:
    assert Prompter(tokenizer, None).text(item("")) == expected
    assert Prompter(tokenizer, None, "<image>").text(item("")) == expected


def test_a_prompt_without_tokens_is_one_token_unless_special_ones_are_added() -> None:
    assert Prompter(Tokenizer(), "", "<image>").text(item(" ")) == " "
    assert Prompter(Tokenizer(bos=" "), "", "<image>").text(item(" ")) == " "
    assert Prompter(Tokenizer(bos=" ", eos="</s>"), None, "<image>").text(item(" \n")) == " "


def test_images_without_a_placeholder_come_first() -> None:
    prompter = Prompter(Tokenizer(), None, "<image>")
    assert prompter.text(item("Which?", ("a.png", "b.png"))) == "<image><image>Which?"
    assert prompter.text(item("Which <image>?", ("a.png", "b.png"))) == "<image>Which <image>?"
    assert prompter.text(item("<image> or <image>?", ("a.png", "b.png"))) == "<image> or <image>?"
    with pytest.raises(BankError, match="has 1 images and 2 placeholders '<image>' in its prompt"):
        prompter.text(item("<image> or <image>?", ("a.png",)))


@pytest.mark.parametrize(
    ("template", "image_token", "bos", "text", "adds"),
    [
        (None, None, "<s>", "Hello", True),
        ("T", None, "<s>", "Hello", False),
        ("T", "<image>", "<s>", "Hello", True),
        ("T", "<image>", "<s>", "<s>Hello", False),
        (None, "<image>", "<s>", "<s>Hello", False),
        ("T", "<image>", None, "Hello", True),
    ],
)
def test_special_tokens_are_added_once(
    template: str | None, image_token: str | None, bos: str | None, text: str, adds: bool
) -> None:
    assert Prompter(Tokenizer(bos=bos), template, image_token).adds_special_tokens(text) is adds


def test_a_template_that_prints_the_date_gets_a_fixed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(_function: str, _folder: str, messages: Any, template: str, _tools: Any, **_limits: Any) -> str:
        return template + "|".join(f"{m['role']}:{m['content']}" for m in messages)

    monkeypatch.setattr(worker, "call", render)
    chat = [{"role": "user", "content": "?"}]
    assert Prompter(Tokenizer(), "plain ").render(chat) == "plain user:?"
    assert Prompter(Tokenizer(), None).render(chat) == "user:?"
    dated = Prompter(Tokenizer(), "{{ strftime_now('%d %b %Y') }} ").render(chat)
    macro, _, rest = dated.partition("endmacro %}\n")
    assert rest == "{{ strftime_now('%d %b %Y') }} user:?"
    assert macro.startswith("{%- macro strftime_now(form) -%}")
    for code, value in (("%d", "01"), ("%b", "Jan"), ("%B", "January"), ("%m", "01"), ("%Y", "2025"), ("%y", "25")):
        assert f"replace('{code}', '{value}')" in macro


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (item("?"), [{"role": "user", "content": [text_part("?")]}]),
        (item("", ("a.png",)), [{"role": "user", "content": [IMAGE]}]),
        (item("?", ("a.png", "b.png")), [{"role": "user", "content": [IMAGE, IMAGE, text_part("?")]}]),
        (
            item("", ("a.png",), {"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}),
            [
                {"role": "system", "content": [text_part("Be brief.")]},
                {"role": "user", "content": [IMAGE, text_part("?")]},
            ],
        ),
        (
            item("", ("a.png",), {"role": "system", "content": "?"}),
            [{"role": "system", "content": [IMAGE, text_part("?")]}],
        ),
        (
            item("", ("a.png",), {"role": "user", "content": [text_part("This"), IMAGE, text_part("?")]}),
            [{"role": "user", "content": [text_part("This"), IMAGE, text_part("?")]}],
        ),
        (
            item("", (), {"role": "user", "content": "?"}, {"role": "assistant", "content": None}),
            [{"role": "user", "content": [text_part("?")]}, {"role": "assistant", "content": []}],
        ),
    ],
)
def test_a_conversation_places_each_image(asked: Item, expected: list[dict[str, Any]]) -> None:
    assert Prompter(Tokenizer(), "T", "<image>").conversation(asked) == expected


def test_a_conversation_of_a_text_model_has_plain_contents() -> None:
    prompter = Prompter(Tokenizer(), "T")
    assert prompter.conversation(item("?")) == [{"role": "user", "content": "?"}]
    message = {"role": "user", "content": "?", "name": "me"}
    assert prompter.conversation(item("", (), message)) == [message]


@pytest.mark.parametrize(
    "content",
    [
        [IMAGE, IMAGE, text_part("?")],
        [{"type": "audio"}],
        [{"type": "text", "text": 7}],
        [text_part("?"), "image"],
        ["?"],
        {"type": "text", "text": "?"},
        7,
    ],
)
def test_a_message_that_cannot_be_read_names_its_item(content: Any) -> None:
    asked = SimpleNamespace(id="i", images=("a.png",), prompt="", messages=({"role": "user", "content": content},))
    with pytest.raises(BankError, match="item 'i' has"):
        Prompter(Tokenizer(), "T", "<image>").conversation(asked)  # type: ignore[arg-type]
