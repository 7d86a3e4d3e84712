"""Secrets are found and taken out in whatever form a server writes them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from pytest_adaptive_eval.subjects.endpoint.secrets import HIDDEN, Redactor, Secret

KEY = "sk-Proj_AbCd/1234+efGH5678xyz"


def each(form: str) -> str:
    return "".join(form.format(ord(character)) for character in KEY)


def bits(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS = {
    "as it is": KEY,
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "percent, needed ones": quote(KEY, safe=""),
    "percent, twice": quote(quote(KEY, safe=""), safe=""),
    "percent, all": each("%{:02x}"),
    "JSON": each("\\u{:04x}"),
    "JSON, slash alone": KEY.replace("/", "\\/"),
    "JSON in JSON": json.dumps(each("\\u{:04x}"))[1:-1],
    "HTML, decimal": each("&#{};"),
    "HTML, hexadecimal": each("&#x{:X};"),
    "HTML, twice": each("&amp;#{};"),
    "HTML, names": KEY.replace("/", "&sol;").replace("+", "&plus;").replace("_", "&lowbar;"),
    "spaces": " ".join(KEY),
    "lines": "\r\n".join(KEY),
    "line escapes": "\\n".join(KEY),
    "no-break spaces": "\xa0".join(KEY),
    "zero-width spaces": "\u200b".join(KEY),
    "byte order marks": "\ufeff".join(KEY),
    "soft hyphens": "\xad".join(KEY),
    "backslashes": "\\".join(KEY),
    "escape characters": "\x1b".join(KEY),
    "terminal colours": "\x1b[31m".join(KEY),
    "base64": bits(KEY),
    "base64 of a header": bits(f"Bearer {KEY}"),
    "base64 for URLs": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64 of a user and the key": bits(f"me:{KEY}"),
    "base64 in lines": "\n".join(bits(f"Bearer {KEY}")[at : at + 8] for at in range(0, 48, 8)),
    "the first 16 characters": KEY[:16],
    "the first 20 characters": KEY[:20],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_found_and_hidden_in_every_form(form: str) -> None:
    redactor = Redactor(Secret(KEY))
    text = f"it is <{form}>, it says"
    assert redactor.found(text)
    assert redactor.clean(text) == f"it is <{HIDDEN}>, it says"


@pytest.mark.parametrize("text", [KEY[:15], KEY[1:], bits("Bearer sk-other"), "100 % & so \\n on", "", "\\", "&#0;%00"])
def test_text_without_a_secret_is_left_as_it_is(text: str) -> None:
    redactor = Redactor(Secret(KEY))
    assert not redactor.found(text)
    assert redactor.clean(text) == text


def test_two_secrets_are_hidden_where_they_stand() -> None:
    redactor = Redactor(Secret(KEY), "http://me:open%20sesame@127.0.0.1:1", ["x-portkey-secret", "short"])
    text = f"a {KEY} b open%20sesame c open sesame d X-Portkey-Secret e short {KEY.upper()}"
    assert redactor.clean(text) == f"a {HIDDEN} b {HIDDEN} c {HIDDEN} d {HIDDEN} e short {HIDDEN}"


def test_without_secrets_nothing_changes() -> None:
    assert not Redactor(None).found("anything")
    assert Redactor(None).clean("any %41 thing") == "any %41 thing"
