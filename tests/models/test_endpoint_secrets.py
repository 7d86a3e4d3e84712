"""Secrets are found and taken out in whatever form a server writes them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from pytest_adaptive_eval.models.endpoint.secrets import HIDDEN, Redactor, Secret

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


@pytest.mark.parametrize(
    "text", [bits("Bearer sk-other"), "sk-other", "sk-Pro", "100 % & so \\n on", "", "\\", "&#0;%00"]
)
def test_text_without_a_secret_is_left_as_it_is(text: str) -> None:
    redactor = Redactor(Secret(KEY))
    assert not redactor.found(text)
    assert redactor.clean(text) == text


#: A part of a secret of random characters, and of one of words.
RANDOM, WORDS = "sk-live-9fQ2xLr7Tz0bNw4Vy8Kd", "TOPSECRET-123456"
PARTS = {
    "tail": RANDOM[-10:],
    "tail of 8": RANDOM[-8:],
    "tail of 6": RANDOM[-6:],
    "first 14": RANDOM[:14],
    "middle": RANDOM[9:19],
    "upper case": RANDOM[9:19].upper(),
    "all but the first": RANDOM[1:],
    "backwards": RANDOM[::-1],
    "tail backwards": RANDOM[:-9:-1],
    "commas": ",".join(RANDOM),
    "commas and spaces": ", ".join(RANDOM),
    "part with commas": ",".join(RANDOM[8:20]),
    "quoted": "', '".join(RANDOM),
    "groups of four": " ".join(RANDOM[at : at + 4] for at in range(0, 28, 4)),
    "dashes": "-".join(RANDOM),
    "without its dashes": RANDOM.replace("-", ""),
    "hex": RANDOM.encode().hex(),
    "hex of a part": RANDOM[8:16].encode().hex(),
    "hex with colons": RANDOM.encode().hex(":"),
    "hex escapes": "".join(f"\\x{ord(character):02x}" for character in RANDOM[8:18]),
    "percent, a part": "".join(f"%{ord(character):02x}" for character in RANDOM[8:18]),
    "base64": bits(RANDOM),
    "base64 of the tail": bits(RANDOM[-12:]),
    "base64 of the middle": bits(f"x{RANDOM[8:20]}y"),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_nothing_of_a_part_is_left(part: str) -> None:
    said = Redactor(Secret(RANDOM)).clean(f"the key <{part}> is wrong, said the server")
    assert said.startswith("the key <")
    assert said.endswith("> is wrong, said the server")
    assert HIDDEN in said
    left = "".join(filter(str.isalnum, said.replace(HIDDEN, " ")[9:-27]))
    assert len(left) < 6, said


@pytest.mark.parametrize("part", [WORDS, WORDS[::-1], WORDS[:14], WORDS[-9:], " ".join(WORDS), ", ".join(WORDS[:9])])
def test_parts_of_a_secret_of_words_are_hidden(part: str) -> None:
    said = Redactor(Secret(WORDS)).clean(f"it is <{part}>")
    assert said in (f"it is <{HIDDEN}>", f"it is <{part[0]}{HIDDEN}>", f"it is <{HIDDEN}{part[-1]}>")


@pytest.mark.parametrize(
    "text",
    [
        "The top secret of 1, 2, 3, 4, 5, 6 is kept.",
        "It is a secret: 123 456 or 123456.",
        "He kept it top  secret, 12 times.",
        "live and let live; the 9th of 20",
        '{"answer": ["a", "b", "c", "d"], "n": 12345}',
        "topology secretary recreate",
    ],
)
@pytest.mark.parametrize("secret", [RANDOM, WORDS, "local-server-key", "no-key-required"])
def test_ordinary_texts_are_left(secret: str, text: str) -> None:
    redactor = Redactor(Secret(secret))
    assert redactor.clean(text) == text
    assert not redactor.found(text)


def test_what_is_public_is_shown() -> None:
    text = "the model llama-3-8b-instruct said llama-3-8b"
    assert HIDDEN in Redactor(Secret("key-llama-3-8b-x9q2w7e1")).clean(text)
    assert Redactor(Secret("key-llama-3-8b-x9q2w7e1"), public=("llama-3-8b-instruct",)).clean(text) == text


def test_two_secrets_are_hidden_where_they_stand() -> None:
    redactor = Redactor(Secret(KEY), "http://me:open%20sesame@127.0.0.1:1", ["x-portkey-secret", "short"])
    text = f"a {KEY} b open%20sesame c open sesame d X-Portkey-Secret e short {KEY.upper()}"
    assert redactor.clean(text) == f"a {HIDDEN} b {HIDDEN} c {HIDDEN} d {HIDDEN} e short {HIDDEN}"


def test_without_secrets_nothing_changes() -> None:
    assert not Redactor(None).found("anything")
    assert Redactor(None).clean("any %41 thing") == "any %41 thing"
