"""Interviews from scripts and notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.plugin.notebook import GIVEN, Interviewed, interview

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "notebook"


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pytest, "main", _alone(pytest.main))
    lines = [{"id": f"q{n}", "prompt": str(n), "answer": "yes", "grader": "exact"} for n in range(60)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path / "q.jsonl"


def _alone(main: Any) -> Any:
    """A run without pytest's logging, which looks at every logger there is before each test."""
    return lambda arguments: main([*arguments, "-p", "no:logging"])


def answer(prompt: str) -> str:
    return "yes" if int(prompt) % 5 else "no"


def test_a_function_is_interviewed_and_judged(questions: Path) -> None:
    result = interview(questions, answer, gates=[{"at_least": 0.4}, {"at_least": 0.95}], seed=2)
    assert [gate.verdict.outcome for gate in result.gates] == ["PASS", "FAIL"]
    assert not result.passed
    assert result.record.interviews[0].asked < 60
    assert str(result) == repr(result) == "\n".join(gate.verdict.sentence for gate in result.gates)
    assert result.record.interviews[0].subject.name == "answer"
    assert "PASS" in str(result)
    assert str(questions.parent) not in str(result)
    assert not GIVEN


def test_a_model_stays_open_and_its_answers_are_kept(questions: Path) -> None:
    model = CallableModel(answer, "five", checkpoint="v1", concurrency=2)
    first = interview(questions, model, gates=[{"at_least": 0.4}], seed=2)
    again = interview(questions, model, gates=[{"at_least": 0.4}], seed=2)
    assert first.passed
    assert again.passed
    assert model.generate("1") == "yes"
    model.close()
    assert [a.item for a in again.record.interviews[0].administrations] == [
        a.item for a in first.record.interviews[0].administrations
    ]


def test_a_name_is_a_model_and_settings_are_those_of_an_evaluation(questions: Path) -> None:
    rows = "subject," + ",".join(f"q{n}" for n in range(60)) + "\nm," + ",".join(["1"] * 60) + "\n"
    (questions.parent / "scores.csv").write_text(rows)
    result = interview("q.jsonl", "replay:scores.csv#m", budget="50%", stop="budget", name="replayed")
    (found,) = result.record.interviews
    assert (found.name, found.asked, result.gates, result.passed) == ("replayed", 30, [], False)


def test_a_mistake_is_one_sentence_without_the_file(questions: Path) -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting 'at_lest'; did you mean 'at_least'\?$"):
        interview(questions, answer, gates=[{"at_lest": 0.4}])
    with pytest.raises(ConfigError, match="missing"):
        interview("missing.jsonl", answer)


def test_a_notebook_shows_the_page_or_the_lines(questions: Path) -> None:
    result = interview(questions, answer, gates=[{"at_least": 0.4}])
    shown = result._repr_html_()
    assert shown.startswith("<iframe srcdoc=") == bool(result.page)
    assert Interviewed(result.record, "a < b", "")._repr_html_() == "<pre>a &lt; b</pre>"


def test_the_example_notebook_is_the_example_script(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((EXAMPLE / "interview.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = (EXAMPLE / "interview.py").read_text("utf-8").partition('"""\n\n')[2]
    lines = [line for cell in cells for line in cell.splitlines() if line]
    assert [line for line in script.splitlines() if line] == ["print(result)" if x == "result" else x for x in lines]
    names: dict[str, Any] = {}
    exec("\n\n".join(cells), names)
    assert names["result"].passed
    assert "True PASS" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["\U0001f600", "\x7f", "é\u2028", 'a "quoted" \\ text', "\ttab\n", "\x00"])
def test_texts_of_settings_may_have_any_character(questions: Path, text: str) -> None:
    result = interview(questions, lambda prompt: "yes", template=f"{text} {{prompt}}", name="any", budget=4, batch=None)
    assert result.record.interviews[0].bank.presentation.template == f"{text} {{prompt}}"
    assert result.record.interviews[0].asked == 4


def test_a_setting_of_none_is_one_that_is_not_given(questions: Path) -> None:
    result = interview(questions, answer, gates=[{"at_least": 0.4, "confidence": None}], budget=None, selector=None)
    assert result.gates[0].verdict.outcome == "PASS"


def test_settings_may_be_numbers_of_numpy_and_paths(questions: Path) -> None:
    result = interview(questions, answer, {"at_least": np.float32(0.25)}, budget=np.int64(4), seed=np.arange(3)[2])
    (found,) = result.record.interviews
    assert (found.asked, found.policy.seed) == (4, 2)


def test_other_settings_are_refused_with_what_is_expected(questions: Path) -> None:
    with pytest.raises(ConfigError, match="a set, expected a text, number, truth value, list or mapping"):
        interview(questions, answer, must_pass={"q1"})
    with pytest.raises(ConfigError, match="half of a character, expected text"):
        interview(questions, answer, system="a\ud800b")
