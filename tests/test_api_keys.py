"""Keys are hidden in what is shown, in the forms in which servers write them."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval import api_keys
from pytest_adaptive_eval.api_keys import (
    HIDDEN,
    LOGGERS,
    PREFIX,
    Secret,
    hide_addresses,
    hide_from_now_on,
    without_keys,
)
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.text import clean_terminal, clean_xml, guard

KEY = "sk-Proj_AbCd/1234+efGH5678xyz"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process without keys, so these are not hidden in other tests."""
    keys = api_keys._Keys()
    monkeypatch.setattr(api_keys, "_KEYS", keys)
    yield
    for name in LOGGERS:
        logging.getLogger(name).removeFilter(keys)


def bits(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS = {
    "as it is": KEY,
    "upper case": KEY.upper(),
    "in a URL": quote(KEY, safe=""),
    "base64": bits(KEY),
    "base64 of a header": bits(f"Bearer {KEY}").removeprefix(bits("Bearer ")[:9]),
    "base64 for URLs": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "the first 16 characters": KEY[:16],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_key_is_hidden_in_every_form(form: str) -> None:
    hide_from_now_on(KEY)
    shown = without_keys(f"it is <{form}>, it says")
    assert HIDDEN in shown
    assert KEY[:PREFIX].lower() not in shown.lower()
    assert len(shown) <= len(f"it is <{HIDDEN}>, it says") + 2  # base64 may keep two characters of its neighbours


@pytest.mark.parametrize("clean", [clean_terminal, clean_xml, clean_html, guard, without_keys])
def test_every_function_that_cleans_for_an_output_hides_keys(clean) -> None:
    assert clean(f"a {KEY} b") == f"a {KEY} b"
    hide_from_now_on(KEY)
    assert clean(f"a {KEY} b") == f"a {HIDDEN} b"


@pytest.mark.parametrize("key", ["sk-1234", "local-development-key", "TOPSECRET-123456"])
def test_words_of_a_key_are_shown(key: str) -> None:
    hide_from_now_on(key)
    for text in ("development", "local", "It is TOPSECRET.", "123456", "sk", ""):
        assert without_keys(text) == text
    assert without_keys(f"the key is {key}.") == f"the key is {HIDDEN}."


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("https://host/run.json?sig=Ab%2F12345&t=1", "https:/host/run.json?[key]&t=1"),
        ("--adaptive-eval-baseline=https://host/run.json?sig=Ab%2F12345&t=1", "https:/host/run.json?[key]&t=1"),
        ('bank = "replay:https://host/run.json?sig=Ab%2F12345&t=1#m"', "https:/host/run.json?[key]&t=1"),
        ("http://user:Ab%2F12345@host/run.json", "a run of user:[key]@host"),
    ],
)
def test_what_may_be_secret_in_an_address_is_hidden(option: str, shown: str) -> None:
    hide_addresses(f"-q\n{option}")
    as_path = "https:/host/run.json?sig=Ab%2F12345&t=1" if "sig" in option else "a run of user:Ab%2F12345@host"
    assert without_keys(as_path) == shown


def test_addresses_within_texts_are_shown() -> None:
    hide_addresses('system = "Read https://host/page?name=long-value first."')
    assert without_keys("page?name=long-value") == "page?name=long-value"


def test_a_placeholder_is_shown() -> None:
    hide_from_now_on("x")
    assert without_keys("x is the unknown") == "x is the unknown"


def test_logs_of_the_http_library_hide_keys(caplog: pytest.LogCaptureFixture) -> None:
    hide_from_now_on(KEY)
    with caplog.at_level("DEBUG", LOGGERS[0]):
        logging.getLogger(LOGGERS[0]).debug("headers %s", {"Authorization": KEY})
    assert KEY not in caplog.text
    assert HIDDEN in caplog.text


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=4), st.text(), st.text())
def test_no_text_keeps_a_key(key: str, before: str, after: str) -> None:
    keys = api_keys._Keys()
    keys.add(key)
    assert key not in keys.hide(f"{before}\n{key}\n{after}").replace(HIDDEN, "\n")
    assert key not in repr(Secret(key))


def test_two_keys_are_hidden() -> None:
    hide_from_now_on(KEY)
    hide_from_now_on("open sesame")
    text = json.dumps({"a": KEY, "b": "open sesame", "c": "open%20sesame"})
    assert json.loads(without_keys(text)) == {"a": HIDDEN, "b": HIDDEN, "c": HIDDEN}
