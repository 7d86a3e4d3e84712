"""Questions that a marker gives in code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import ConfigError, UsageError
from pytest_adaptive_eval.plugin.collect.coded_items import write_items

DATA = {"prompt": "What is 2 + 3?", "answer": "5", "grader": "numeric"}


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Write questions of code, and read the bank."""

    def write(given: Any) -> Any:
        return read_bank(write_items(given, tmp_path / "items" / "sums.jsonl", tmp_path))

    return write


def test_items_and_dictionaries_are_the_bank_that_a_file_of_them_would_be(written: Any, tmp_path: Path) -> None:
    item = Item("a", prompt="Who wrote it?", answer=("Ada", "Lovelace"))
    (tmp_path / "file.jsonl").write_text(json.dumps(item.to_json()) + "\n" + json.dumps({"id": "b", **DATA}) + "\n")
    bank = written([item, {"id": "b", **DATA}])
    assert bank.content_hash == read_bank(tmp_path / "file.jsonl").content_hash
    assert bank.name == "sums"


def test_an_id_follows_from_the_question_and_its_key_alone(written: Any) -> None:
    first = list(written([DATA, {**DATA, "answer": "6"}]).ids)
    again = list(written(lambda: [{**DATA, "answer": "6"}, {**DATA, "meta": {"source": "new"}}]).ids)
    assert again == first[::-1]
    assert len(set(first)) == 2


def test_pictures_are_found_beside_the_test(written: Any, tmp_path: Path, picture: bytes) -> None:
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "a.png").write_bytes(picture)
    bank = written([{"prompt": "What is it?", "images": ["shapes/a.png"], "answer": "a circle"}])
    (path,) = bank.items[0].image_paths
    assert Path(path).read_bytes() == picture


@pytest.fixture
def picture() -> bytes:
    """Bytes that begin as a PNG does."""
    return b"\x89PNG\r\n\x1a\n" + bytes(20)


def _broken() -> Any:
    raise LookupError("no table")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("questions.jsonl", r"items is str, expected a list .* write bank="),
        (DATA, r"items is dict, expected a list"),
        ([], r"items is empty"),
        ([DATA, "5"], r"items\[1\] is '5', expected an Item, or a dictionary"),
        ([{**DATA, "meta": {"x": {1}}}], r"items\[0\] is not JSON data"),
        (_broken, r"_broken\(\) raised LookupError: 'no table'|_broken\(\) raised LookupError: no table"),
        ([{"prompt": "?", "answer": "a", "images": ["none.png"]}], r"items: no image 'none.png'"),
        ([{**DATA, "colour": "red"}], r"sums.jsonl:1: .*colour"),
        ([DATA, DATA], r"sums.jsonl:2: .*(twice|duplicate|already)"),
    ],
)
def test_what_is_no_list_of_questions_is_refused(written: Any, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        written(given)


CODE = """
import pytest
from pathlib import Path

def questions():
    with Path("calls.txt").open("a") as file:
        file.write("called\\n")
    return [{{"prompt": f"question {{n}}", "answer": "right"}} for n in range(40)]

@pytest.mark.adaptive_eval(items={items}, budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)])
def test_a_function_of_questions_is_called_once_in_a_run(lab: Any, workers: tuple[str, ...]) -> None:
    lab.toy()
    lab.tests(CODE.format(items="questions"))
    (lab.spawn if workers else lab.run)(*workers)
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert lab.lines("calls.txt") == ["called"]
    first = [answer["item"] for answer in lab.record["interviews"][0]["administrations"]]
    lab.run()
    assert [answer["item"] for answer in lab.record["interviews"][0]["administrations"]] == first


def test_a_marker_with_items_and_a_bank_is_refused(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(CODE.format(items="questions, bank='toy.jsonl'"))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it.py:*: items and bank exclude each other; remove one*"])


def test_an_error_of_the_questions_names_their_test(lab: Any) -> None:
    lab.toy()
    lab.tests(CODE.format(items="[]"))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it.py:*test_toy: items is empty*"])


def test_a_process_gets_what_another_made(tmp_path: Path) -> None:
    from pytest_adaptive_eval.plugin.exchange import ResultExchange

    first, second = ResultExchange(str(tmp_path)), ResultExchange(str(tmp_path))
    assert first.once("name", lambda: "made") == "made"
    assert second.once("name", lambda: "another") == "made"

    def fail() -> str:
        raise ConfigError("no questions")

    for process in (first, second):
        with pytest.raises(ConfigError, match="no questions"):
            process.once("other", fail)
