"""Foreign text never breaks the place where it is shown."""

from __future__ import annotations

import time
import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.text import (
    clean_terminal,
    clean_xml,
    columns,
    guard,
    money,
    shown_address,
    shown_command,
    wrap,
)
from tests.reports.runner import commands

#: Any text, lone surrogates included, and often what does harm.
TEXTS = st.lists(
    st.text(st.characters(exclude_categories=()))
    | st.sampled_from(
        ["\x1b[31m", "\x1b]0;t\x07", "\x9b1m", "\x00", "\r", "\n", "::", "##[", "]]>", "\ufffe", "模", "\u0301"]
    ),
    max_size=8,
).map("".join)


@given(TEXTS)
def test_xml_holds_every_cleaned_text(text: str) -> None:
    clean = clean_xml(text)
    element = ElementTree.Element("a", {"b": clean})
    element.text = clean
    again = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))
    assert again.get("b") == clean
    assert (again.text or "") == clean
    assert clean_xml(clean) == clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ü 模型 ]]> <&\"'", "plain ü 模型 ]]> <&\"'"),
        ("a\r\nb\rc\td", "a\nb\nc\td"),
        ("a\x00b\x0b", "a\\x00b\\x0b"),
        ("\ud800 \udfff", "\\ud800 \\udfff"),
        ("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "red link"),
        ("\x9b31mred \x1bM \x1b[", "red  \\x1b["),
        ("\x7f\x85\ufffe\ufdd0", "\\x7f\\x85\\ufffe\\ufdd0"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_clean_xml(text: str, expected: str) -> None:
    assert clean_xml(text) == expected


def test_a_long_text_says_what_is_left_out() -> None:
    assert clean_xml("x" * 30, 10) == "xxxxxxxxxx... (20 more characters)"
    assert clean_xml("x" * 10, 10) == "x" * 10


@given(TEXTS, st.integers(3, 40), st.booleans())
def test_a_terminal_line_is_one_line_that_fits(text: str, limit: int, keep_end: bool) -> None:
    clean = clean_terminal(text, limit, keep_end=keep_end)
    assert columns(clean) <= limit
    assert len(clean) <= 9 * limit
    assert all(c.isprintable() or c in "\u200c\u200d" for c in clean)
    assert "::" not in clean
    assert "##" not in clean
    clean.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  two\n\n lines\t ", "two lines"),
        ("\x1b[31mred\x1b[0m\x08", "red\\x08"),
        ("\u202eevil \ud800", "\\u202eevil \\ud800"),
        ("क्‍ष 👩‍🔬", "क्‍ष 👩‍🔬"),
        ("std::bad_alloc ::error::x ##[group]", "std: :bad_alloc : :error: :x # #[group]"),
        (":::: ####", ": : : : # # # #"),
    ],
)
def test_clean_terminal(text: str, expected: str) -> None:
    assert clean_terminal(text) == expected


def test_what_is_cut_shows() -> None:
    assert clean_terminal("checkpoint-000123", 10) == "checkpoin…"
    assert clean_terminal("checkpoint-000123", 10, keep_end=True) == "check…0123"
    assert clean_terminal("模型模型模型", 6) == "模型…"
    assert clean_terminal("a" + "\u0301" * 1000, 6) == "a" + "\u0301" * 19 + "…"


def test_columns() -> None:
    assert [columns(text) for text in ("", "abc", "模型", "é", "e\u0301", "a\u200db")] == [0, 3, 4, 1, 1, 2]


@given(TEXTS | st.lists(st.sampled_from([*":#[] \n\t\u3000\u200d", "error", "\x1b[m"]), max_size=20).map("".join))
def test_no_runner_finds_a_command_in_a_guarded_text(text: str) -> None:
    for guarded in (guard(text), guard(text, "| ")):
        assert commands(guarded) == []
        assert all(c.isprintable() or c in "\n\t\u200c\u200d" or unicodedata.category(c) == "Zs" for c in guarded)
        guarded.encode("utf-8")
    assert guard(guard(text)) == guard(text)
    assert all(line.startswith("| ") for line in guard(text, "| ").splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  in a.py::b\n\tstd::string\n", "  in a.py::b\n\tstd::string\n"),
        ("a\r\n  ::error::b\n", "a\n|   ::error::b\n"),
        ("10%\r::error::b", "10%\\r::error::b"),
        ("## A title\n##[group]x ##vso[task]y", "## A title\n# #[group]x # #vso[task]y"),
        ("\x1b[1m::error::x\x1b[0m", "| ::error::x"),
        ("\u3000::error::x \ud800", "| \u3000::error::x \\ud800"),
        ("क्‍ष 👩‍🔬", "क्‍ष 👩‍🔬"),
    ],
)
def test_a_guarded_text_is_else_as_it_was(text: str, expected: str) -> None:
    assert guard(text) == expected


@given(st.lists(st.text("ab模", min_size=1, max_size=12), max_size=30), st.integers(8, 30))
def test_wrap_breaks_between_words(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width, "  ", "* ")
    assert " ".join(line[2:] for line in lines).split() == words
    assert lines[0].startswith("* ")
    for line in lines:
        assert columns(line) <= width or " " not in line[2:]


def test_a_number_keeps_its_unit() -> None:
    assert wrap("cost: 32 calls, 2.8 s; more", 22) == ["cost: 32 calls, 2.8 s;", "more"]
    assert wrap("cost: 32 calls, 2.8 s; more", 20) == ["cost: 32 calls,", "2.8 s; more"]
    assert wrap("an interval at 95 % holds", 18) == ["an interval at", "95 % holds"]


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    "piece", ["\x1b[", "\x1b]", "\x9d", "\x9b", "\x1b]a", "\x1b[1;", "\x1b[ ", "::", "##", "\r", ":\u200d", "#\u200d"]
)
def test_cleaning_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    clean_xml(piece * 50_000)
    clean_terminal(piece * 50_000, 80)
    guard(piece * 50_000)
    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("https://me:word@host:8000/v1?key=abc#tiny", "https://host:8000/v1#tiny"),
        ("http://host/v1", "http://host/v1"),
        ("http://host/v1#@cf/meta/llama-3", "http://host/v1#@cf/meta/llama-3"),
        ("http://host/v1#m?api_key=abc", "http://host/v1#m"),
        ("http://abc@host/v1#m", "http://host/v1#m"),
        ("http://me:a/b@host/v1#m", "http://host/v1#m"),
        ("http://me:a?b@host/v1#m", "http://[hidden]"),
        ("http://me:a#b@host/v1#m", "http://[hidden]"),
        ("http://[::1]:80/v1?a#m", "http://[::1]:80/v1#m"),
        ("host:80/v1?api_key=abc#m", "host:80/v1#m"),
        ("me:word@host:80/v1#m", "host:80/v1#m"),
        ("htp://me:word@host/v1?k=abc", "htp://host/v1"),
        ("models/llama@v2", "models/llama@v2"),
        ("llama@v2", "llama@v2"),
        ("replay:one.jsonl#late", "replay:one.jsonl#late"),
        ("", ""),
    ],
)
def test_an_address_shows_host_path_and_model_alone(spec: str, shown: str) -> None:
    assert shown_address(spec) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["serve", "ck", "--api-key", "abc", "--port", "{port}"], "serve ck --api-key [hidden] --port {port}"),
        (["x", "--hf_token=abc", "-password", "abc", "--seed=3"], "x --hf_token=[hidden] -password [hidden] --seed=3"),
        (["api_key=abc", "base_url=https://me:abc@h/v1?k=abc"], "api_key=[hidden] base_url=https://h/v1"),
        (["--max-tokens", "8", "tokenized_requests=False"], "--max-tokens 8 tokenized_requests=False"),
        (["--api-key", "--port", "80"], "--api-key --port 80"),
    ],
)
def test_a_command_shows_no_value_of_a_key(words: list[str], shown: str) -> None:
    assert " ".join(shown_command(words)) == shown


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (100.0, "USD", "$100"),
        (1234.5, "USD", "$1,234.50"),
        (0.04, "USD", "$0.04"),
        (0.0021, "EUR", "€0.0021"),
        (0.1, "USD", "$0.10"),
        (0.0, "USD", "$0"),
        (3.3, "CHF", "3.30 CHF"),
        (1e-30, "USD", "$0"),
    ],
)
def test_money_has_no_exponent(amount: float, currency: str, shown: str) -> None:
    assert money(amount, currency) == shown
