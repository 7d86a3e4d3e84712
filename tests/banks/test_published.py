"""Published benchmarks: their answers are accepted, and those of punctuation alone are graded as they stand."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "benchmarks").is_dir(),
    reason=f"the public response matrices and benchmarks are not in {DATA} (ADAPTIVE_EVAL_DATA)",
)
#: Fields of published items and of published answers that hold the expected answer.
EXPECTED = ("answer", "target", "ideal", "gold", "Best Answer", "continuation", "gt_answer", "Value", "ground_truth")
CHOICES = ("choices", "options", "endings")
BRACKETS = ("] ]", ") }", "}", "[]", "---", "*", ",")


def item(answer: str, **more: Any) -> Item:
    return parse_item(json.dumps({"id": "q", "prompt": "?", "answer": answer, **more}), "bank", "")


def objects(data: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object, at any depth."""
    if isinstance(data, dict):
        yield data
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from objects(value)


def documents(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one a line or several."""
    blank, decoder, at = re.compile(r"\s*"), json.JSONDecoder(), 0
    while (at := blank.match(text, at).end()) < len(text):
        data, at = decoder.raw_decode(text, at)
        yield data


def published(folder: str) -> list[dict[str, Any]]:
    """The objects of all JSON and JSON lines files."""
    found: list[dict[str, Any]] = []
    for path in sorted((DATA / folder).rglob("*")):
        name = path.name.removesuffix(".gz")
        if name.endswith((".json", ".jsonl")):
            text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
            found += objects(list(documents(text)))
    return found


def expected(data: dict[str, Any], fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        value = data.get(field)
        yield from (str(one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str | int))


def refusal(answer: str, **more: Any) -> str:
    try:
        item(answer, **more)
    except BankError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("answer", BRACKETS)
def test_an_answer_of_punctuation_is_accepted_and_compared_as_a_whole(answer: str) -> None:
    asked = item(answer)
    assert asked.grade(f" {answer}\n") == 1
    assert [other for other in (*BRACKETS, "", "no", f"{answer} )") if other != answer and asked.grade(other)] == []


def test_contains_of_punctuation_is_refused_with_the_grader_to_use() -> None:
    assert "use the grader 'exact', which compares the whole answer, or allow it" in refusal("] ]", grader="contains")


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(
    ("folder", "fields"), [("benchmarks", EXPECTED), ("answers", ("gold",))], ids=["benchmarks", "answers"]
)
def test_no_published_answer_is_refused_and_contains_only_for_punctuation(folder: str, fields: tuple[str, ...]) -> None:
    answers = {answer for data in published(folder) for answer in expected(data, fields) if answer.strip()}
    assert len(answers) > 2_000
    refused = {answer: why for answer in answers if (why := refusal(answer))}
    assert refused == {}
    marks = {answer for answer in answers if refusal(answer, grader="contains")}
    assert marks
    assert not any(sign.isalnum() for answer in marks for sign in answer)
    for answer in marks:
        asked = item(answer)
        assert asked.grade(answer) == 1
        assert [other for other in marks if asked.grade(other) and other.split() != answer.split()] == []


@pytest.mark.slow
@needs_data
def test_no_published_choice_is_refused() -> None:
    asked = 0
    for data in published("benchmarks"):
        scores = data.get("target_scores")
        choices = list(scores) if isinstance(scores, dict) else next((data[k] for k in CHOICES if data.get(k)), None)
        if not isinstance(choices, list):
            continue
        texts = [choice.get("text") if isinstance(choice, dict) else choice for choice in choices]
        answer = max(scores, key=scores.__getitem__) if isinstance(scores, dict) else data.get("answer")
        if all(isinstance(text, str) for text in texts) and isinstance(answer, str):
            assert refusal(answer, choices=texts) == "", data
            asked += 1
    assert asked > 3_000
