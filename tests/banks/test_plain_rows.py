"""Plain rows of a JSONL are checked and hashed as full parsing does, and become items on access."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.banks import read_bank, reader
from pytest_adaptive_eval.banks.hashes import content_hash
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.banks.plain import PlainReader
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import items_naming

PLAIN = {"id": "a", "prompt": "p", "answer": "x"}

characters = 'aA0 é"\\/\x07\x7f\u2028😀.'
texts = st.text(st.sampled_from(characters), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | texts | st.floats() | st.sampled_from([0, -0.0, 1.0, 10**20, 10**400, 1e16]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
ordinary = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "q-1"]), "prompt": texts.map("What? {}".format), "answer": st.sampled_from("A4")},
    optional={
        "grader": st.sampled_from(["exact", "choice", "numeric"]),
        "choices": st.lists(texts, min_size=2, max_size=3),
        "category": st.lists(texts, min_size=1, max_size=2),
        "meta": st.dictionaries(st.sampled_from(["source", "é"]), values, min_size=1),
    },
)
strange = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["", "a b", "é"]),
        "prompt": texts | st.just("\ud800"),
        "answer": texts | values,
        "grader": st.sampled_from(["regex", "yesno", "task", "judge", "bits_per_byte", "none", ""]),
        "choices": st.lists(texts, max_size=1),
        "category": texts,
        "meta": st.dictionaries(
            st.sampled_from(["tolerance", "max_tokens", "lenient", "textless", "answer_expression"]), values
        ),
        "images": st.just(["a.png"]),
        "colour": st.none(),
    },
)


@st.composite
def lines(draw):
    """A row as one of several writers puts it, at times with a key that stands twice."""
    row = draw(ordinary)
    if draw(st.booleans()):
        row |= draw(strange)
    text = json.dumps(row, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([None, (",", ":")])))
    if draw(st.booleans()):
        text = text.replace("{", '{"answer": "x", ', 1)
    if draw(st.booleans()):
        text = text.replace('\\"', "\\u0022")
    return text.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"", b"\n", b"\r\n"]))


@given(line=lines())
def test_a_plain_row_has_id_category_and_hash_of_its_item(line):
    read = PlainReader().read(line)
    try:
        item = parse_item(line, "x")
    except BankError:
        assert read is None
    else:
        if read is not None:
            row, hashed = read
            assert (row.id, row.category, hashed) == (item.id, item.category, item.content_hash)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"grader": "exact", "category": ["c", "d"]},
        {"choices": ["x", "y"]},
        {"answer": "4.5", "grader": "numeric", "meta": {"tolerance": 0.5, "source": {"file": None}}},
        {"prompt": "余数", "meta": {"n": 10**30}},
        {"prompt": 'so "quoted"\n\t\x7f'},
    ],
)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_ordinary_rows_are_plain(more, ascii_only):
    line = json.dumps({**PLAIN, **more}, ensure_ascii=ascii_only).encode()
    assert PlainReader().read(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"a","prompt":"p","answer":"x","answer":"x"}',
        b'{"id":"a","prompt":"\\u0022\\u0022","answer":"x","answer":"x"}',
        b'{"id":"a","prompt":"p","answer":"x","meta":{"k":1,"k":1}}',
        b'{"id":"a","prompt":"p","answer":"x","grader":""}',
        b'{"id":"a","prompt":"p","answer":"x","meta":null}',
        b'{"id":"a","prompt":"p","answer":" "}',
        b'{"id":"a","prompt":"p","answer":""}',
    ],
)
def test_a_faulty_row_is_not_plain(line):
    assert PlainReader().read(line) is None
    with pytest.raises(BankError):
        parse_item(line, "x")


@pytest.fixture
def parsed(monkeypatch):
    """Lines that were parsed in full."""
    calls = []
    monkeypatch.setattr(reader, "parse_item", lambda line, *rest: calls.append(line) or parse_item(line, *rest))
    return calls


def test_items_of_a_plain_file_are_made_on_access(tmp_path, parsed):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({**PLAIN, "id": f"q{n}"}) + "\n" for n in range(9)))
    bank = read_bank(path)
    assert (list(bank.ids), parsed) == ([f"q{n}" for n in range(9)], [])
    assert (bank.items[7].id, bank.items[-1].id, len(parsed)) == ("q7", "q8", 2)


def test_items_are_those_of_the_file_as_it_was_read(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\r\n{"id":"a","prompt":"p","answer":"x"}\r\n\n{"id":"b","prompt":"q","answer":5}')
    bank = read_bank(path)
    path.write_bytes(b"")
    assert [(item.prompt, item.answer) for item in bank.items] == [("p", "x"), ("q", "5")]
    assert bank.content_hash == content_hash(bank.items)


def test_the_lines_of_an_id_that_stands_twice_are_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps({**PLAIN, "id": name}) for name in ("a", "b", "a", "b")))
    with pytest.raises(BankError, match=r"x\.jsonl:3: the item id 'a' is already in line 1"):
        read_bank(path)


def test_items_are_found_by_a_name_that_is_written_with_escapes(tmp_path, parsed):
    path = tmp_path / "x.jsonl"
    rows = [{**PLAIN, "id": "a"}, {**PLAIN, "id": "b", "turns": ["And then?"]}, {**PLAIN, "id": "c"}]
    path.write_text("".join(json.dumps(row).replace("turns", "t\\u0075rns") + "\n" for row in rows))
    bank = read_bank(path)
    parsed.clear()
    assert [item.id for item in items_naming(bank.items, "turns")] == ["b"]
    assert len(parsed) == 1
