"""Values from foreign code: told apart, read strictly, and never a danger to the reader."""

from __future__ import annotations

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.extensions.sandbox import Failure, same
from pytest_adaptive_eval.extensions.sandbox.harness import DEPTH, LIMIT, encode
from pytest_adaptive_eval.extensions.sandbox.values import decode, read_answers

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary())
KEYS = st.recursive(SCALARS, lambda x: st.one_of(st.lists(x).map(tuple), st.frozensets(x)), max_leaves=5)
VALUES = st.recursive(
    SCALARS,
    lambda x: st.one_of(
        st.lists(x), st.lists(x).map(tuple), st.dictionaries(KEYS, x), st.sets(KEYS), st.frozensets(KEYS)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read(value: object) -> None:
    text = encode(value)
    back = decode(text)
    assert type(back) is type(value)
    assert same(back, value)
    assert encode(back) == text
    assert text.isascii()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0), (1, True), (0, False), (1, "1"), (1.0, True), ((1,), [1]), ([1], [True]), ({1}, {1.0}), ("", None),
        ({1}, frozenset({1})), ({1: 2}, {True: 2}), (b"a", "a"), ([], ()), ({}, set()), (math.nan, 0.0),
        ([1, 2], [2, 1]), (object(), object()), (object, object),
    ],
)  # fmt: skip
def test_different_values_are_not_the_same(left: object, right: object) -> None:
    assert not same(left, right)
    assert not same([left], [right])


def test_equal_values_are_the_same() -> None:
    assert same(math.nan, math.nan)
    assert same(0.0, -0.0)
    assert same({1: "a", 2: "b"}, {2: "b", 1: "a"})
    assert same({"x", "y", 3}, {3, "y", "x"})
    nested: list[object] = []
    nested.append(nested)
    assert not same(nested, nested)


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1.5", "NaN", "Infinity", "{}", '{"a":1}', "[]", "[1]", '["int"]', '["int",1]', '["int","01"]', "nul",
        '["int","-0"]', '["int","0x1"]', '["int"," 1"]', '["int","1_0"]', '["int","A"]', '["int","1","2"]',
        '["float","1"]', '["float","NaN"]', '["float","infinity"]', '["float","0x1p99999"]', '["bytes","0"]',
        '["bytes","0 0"]', '["x","y"]', '["bytes","FF"]', '["list","a"]', '["list",{}]',
        '["set",[["list",[]]]]', '["set",[true,["int","1"]]]',
        '["dict",[["a"]]]', '["dict",[["a",true],["a",true]]]', '["dict",[[["list",[]],true]]]', '["list",[true,]]',
        '[["list"],[]]', '["dict",["ab"]]', "[" * 100_000, '["list",[' * 50_000, '["object",[]]', '"a" "b"', "\x00",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)


def test_depth_and_size_are_bounded() -> None:
    value: object = None
    for _ in range(DEPTH + 1):
        value = [value]
    line = f'n ["tuple",["answers",["list",[["tuple",["value",{encode(value)}]]]]]]'.encode()
    answers = read_answers(line, "n", 1)
    assert not isinstance(answers, Failure)
    assert same(answers[0], value)
    with pytest.raises(ValueError, match="deeper"):
        encode([value])
    with pytest.raises(ValueError, match="more than"):
        encode("x" * LIMIT)
    with pytest.raises(ValueError, match="more than"):
        decode('"' + "x" * LIMIT + '"')


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("kind", ["set", "frozenset", "dict"])
def test_members_made_to_collide_are_refused_fast(kind: str) -> None:
    same_hash = [f'["int","{i * (2**61 - 1):x}"]' for i in range(100_000)]
    members = [f"[{key},null]" for key in same_hash] if kind == "dict" else same_hash
    start = time.thread_time()
    with pytest.raises(ValueError, match="with one hash"):
        decode(f'["{kind}",[{",".join(members)}]]')
    assert time.thread_time() - start < 30  # 5 000 million comparisons would take minutes


def test_answers_are_as_many_as_calls_and_marked() -> None:
    line = b'abc ["tuple",["answers",["list",[["tuple",["value",null]],["tuple",["failure","E","m\\ud800"]]]]]]'
    assert read_answers(line, "abc", 2) == (None, Failure("E", "m\\ud800"))
    for nonce, count in (("abc", 1), ("abc", 3), ("abd", 2), ("ab", 2), ("", 2)):
        with pytest.raises(ValueError):
            read_answers(line, nonce, count)
    assert read_answers(b'n ["tuple",["broken","E","m"]]', "n", 5) == Failure("E", "m")


@pytest.mark.slow
def test_a_hundred_thousand_lines_crash_nothing() -> None:
    """Random bytes, random words of the grammar, and true lines with something changed."""
    rng = random.Random(0)
    values = [None, True, 1, -(2**70), 0.1, "a\ud800\n", b"\xff", [1, (2, {3})], {"k": frozenset({None})}, math.inf]
    true = [encode(("answers", [("value", v), ("failure", "E", "m")])).encode() for v in values]
    true.append(encode(("broken", "E", "m")).encode())
    words = [
        b'["tuple",[',
        b'["list",[',
        b'["dict",[',
        b'["set",[',
        b'["int","',
        b'["float","',
        b"]]",
        b"]",
        b"[",
        b'"',
    ]
    words += [
        b",",
        b"null",
        b"true",
        b"nan",
        b"1",
        b"f",
        b"0x1.8p+0",
        b'"answers"',
        b'"value"',
        b"\\u12",
        b"\\",
        b"\xff",
    ]
    read = 0
    for i in range(100_000):
        kind = i % 4
        if kind == 0:
            line = rng.randbytes(rng.randrange(60))
        elif kind == 1:
            line = b"n " + b"".join(rng.choices(words, k=rng.randrange(20)))
        else:
            spoilt = bytearray(b"n " + rng.choice(true))
            for _ in range(rng.randrange(3)):
                at = rng.randrange(len(spoilt))
                if kind == 2:
                    spoilt[at] = rng.randrange(256)
                else:
                    spoilt[at : at + rng.randrange(5)] = rng.choice(words)
            line = bytes(spoilt)
        try:
            got = read_answers(line, "n", 2)
        except ValueError:
            continue
        read += 1
        assert isinstance(got, Failure) or len(got) == 2
        encode(got if isinstance(got, tuple) and not any(isinstance(v, Failure) for v in got) else None)
    assert 10_000 < read < 60_000
