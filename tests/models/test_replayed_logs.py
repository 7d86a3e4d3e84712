"""Records of runs, and logs of other tools, as models: an ordinary run on today's bank, by today's graders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pytest_adaptive_eval.extensions.logs.replay import LoggedAnswer, LogReplay
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import Example, Presentation, with_choices
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.images import question_hash
from pytest_adaptive_eval.records.parts import PresentationRecord

TOML = """
[[eval]]
bank = "toy.jsonl"
budget = 20
stop = "budget"
[[eval.gate]]
at_least = {least}
"""


@pytest.fixture
def toy(lab: Any) -> Any:
    """A bank of 40 questions, a run of 20 of them, 16 right, and its record `first.json`."""
    (lab.path / "adaptive-eval.toml").write_text(TOML.format(least=0.5))
    answer = "yes", "yes", "no", "yes", "yes"
    write(lab, "toy.jsonl", [{"id": f"q{n}", "prompt": f"{n}?", "answer": "yes"} for n in range(40)])
    write(lab, "answers.jsonl", [{"id": f"q{n}", "text": answer[n % 5]} for n in range(40)])
    assert replay(lab, "answers.jsonl", "--adaptive-eval-record=first.json").ret == 0
    return lab


def write(lab: Any, name: str, rows: list[dict[str, Any]]) -> None:
    (lab.path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def replay(lab: Any, log: str, *flags: str) -> Any:
    return lab.run("--adaptive-eval-fresh", f"--adaptive-eval-model=replay:{log}", *flags)


def interview(lab: Any, name: str = "") -> dict[str, Any]:
    record = json.loads((lab.path / name).read_text()) if name else lab.record
    (found,) = record["interviews"]
    return dict(found)


def scores(lab: Any, name: str = "") -> dict[str, Any]:
    return {entry["item"]: entry["score"] for entry in interview(lab, name)["administrations"]}


def test_a_replayed_record_has_the_draws_scores_and_verdicts_of_its_run(toy: Any) -> None:
    first = interview(toy, "first.json")
    assert replay(toy, "first.json").ret == 0
    again = interview(toy)
    assert scores(toy) == scores(toy, "first.json")
    for field in ("accuracy", "asked", "statuses", "stop", "conditions"):
        assert again[field] == first[field], field
    assert again["subject"]["name"] == first["subject"]["name"]


def test_recorded_texts_are_graded_by_the_keys_of_today(toy: Any) -> None:
    rows = [{"id": f"q{n}", "prompt": f"{n}?", "answer": "no"} for n in range(40)]
    write(toy, "toy.jsonl", rows)
    assert replay(toy, "first.json").ret == 1
    before, after = scores(toy, "first.json"), scores(toy)
    assert after == {item: 1.0 - score for item, score in before.items()}


def test_other_gates_judge_a_replayed_record(toy: Any) -> None:
    (toy.path / "adaptive-eval.toml").write_text(TOML.format(least=0.99))
    assert replay(toy, "first.json").ret == 1
    assert toy.outcomes() == [("toy-accuracy[at-least-0.99]", "FAIL")]


def test_a_score_without_a_text_is_lost_where_the_item_changed(toy: Any) -> None:
    write(toy, "scores.jsonl", [{"id": f"q{n}", "score": 1} for n in range(40)])
    assert replay(toy, "scores.jsonl", "--adaptive-eval-record=scored.json").ret == 0
    assert replay(toy, "scored.json").ret == 0
    assert set(scores(toy).values()) == {1.0}
    edited = {item for item in scores(toy) if int(item[1:]) % 7 == 0}
    keys = ["no" if n % 7 == 0 else "yes" for n in range(40)]
    write(toy, "toy.jsonl", [{"id": f"q{n}", "prompt": f"{n}?", "answer": key} for n, key in enumerate(keys)])
    replay(toy, "scored.json")
    assert {item for item, score in scores(toy).items() if score is None} == edited
    assert interview(toy)["statuses"]["not_recorded"] == len(edited)


def test_a_void_interview_is_replayed_only_in_part(toy: Any) -> None:
    record = json.loads((toy.path / "first.json").read_text())
    record["interviews"][0]["error"] = "three answers in a row failed"
    (toy.path / "void.json").write_text(json.dumps(record))
    result = replay(toy, "void.json")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*void.json: evaluation 'toy': the run did not end as planned*partial = true*"])
    (toy.path / "pytest.ini").write_text("[pytest]\nadaptive_eval_model_options =\n    partial = true\n")
    result = replay(toy, "void.json", "--adaptive-eval-junit=gates.xml")
    assert result.ret == 0
    assert "WARNING: toy:" in result.stdout.str()
    for text in (toy.record["warnings"][0], (toy.path / "gates.xml").read_text()):
        assert "void.json: evaluation 'toy': the run did not end as planned" in text


def test_a_record_of_several_subjects_asks_for_one(toy: Any) -> None:
    record = json.loads((toy.path / "first.json").read_text())
    other = {**record["interviews"][0], "name": "other", "subject": {"name": "b"}}
    (toy.path / "two.json").write_text(json.dumps({**record, "interviews": [*record["interviews"], other]}))
    result = replay(toy, "two.json")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*the record has subjects answers, b; give *two.json#NAME*"])
    assert replay(toy, "two.json#answers").ret == 0
    assert replay(toy, "two.json#toy").ret == 0


def test_an_item_of_two_evaluations_is_told_apart_by_its_text(toy: Any) -> None:
    record = json.loads((toy.path / "first.json").read_text())
    asked = [{**entry, "item_hash": "another", "text": "no", "score": 0} for entry in
             record["interviews"][0]["administrations"]]  # fmt: skip
    other = {**record["interviews"][0], "name": "other", "administrations": asked}
    (toy.path / "two.json").write_text(json.dumps({**record, "interviews": [other, *record["interviews"]]}))
    assert replay(toy, "two.json").ret == 0
    assert scores(toy) == scores(toy, "first.json")


def harness_log(lab: Any, right: list[bool], planned: int) -> None:
    """Samples of lm-evaluation-harness with answers to the questions of the bank, and the results beside them."""
    folder = lab.path / "results" / "m"
    folder.mkdir(parents=True)
    rows = [
        {
            "doc_id": n,
            "doc": {"id": f"q{n}"},
            "target": "yes",
            "arguments": {"gen_args_0": {"arg_0": f"{n}?", "arg_1": {"until": []}}},
            "filtered_resps": ["yes" if good else "no"],
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": f"h{n}",
            "exact_match": float(good),
        }
        for n, good in enumerate(right)
    ]
    write(lab, "results/m/samples_toy_2031-01-01T00-00-00.jsonl", rows)
    results = {"model_name": "org/m", "n-samples": {"toy": {"effective": planned}}}
    (folder / "results_2031-01-01T00-00-00.json").write_text(json.dumps(results))


def test_logs_of_a_tool_answer_ones_own_bank(toy: Any) -> None:
    harness_log(toy, [n % 4 > 0 for n in range(40)], 40)
    (toy.path / "pytest.ini").write_text("[pytest]\nadaptive_eval_model_options =\n    ids = 'doc.id'\n")
    assert replay(toy, "results").ret == 0
    assert interview(toy)["subject"]["name"] == "org/m"
    assert scores(toy) == {item: float(int(item[1:]) % 4 > 0) for item in scores(toy)}
    write(toy, "toy.jsonl", [{"id": f"q{n}", "prompt": f"{n}?", "answer": "no"} for n in range(40)])
    assert replay(toy, "results").ret == 1
    assert scores(toy) == {item: float(int(item[1:]) % 4 == 0) for item in scores(toy)}


def test_logs_that_ended_early_are_refused(toy: Any) -> None:
    harness_log(toy, [True] * 6, 40)
    result = replay(toy, "results")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*6 of 40 planned samples: the log is not whole; finish the run*"])


def test_a_log_may_be_the_baseline(toy: Any) -> None:
    more = '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.1\n'
    (toy.path / "adaptive-eval.toml").write_text(TOML.format(least=0.5) + more)
    about = {"version": 2, "status": "success", "eval": {"model": "old", "task": "toy"}}
    samples = [{"id": n, "epoch": 1, "input": "?", "scores": {"match": {"value": "CI"[n % 2]}}} for n in range(40)]
    (toy.path / "old.json").write_text(json.dumps({**about, "samples": samples}))
    write(toy, "toy.jsonl", [{"id": f"toy:{n}", "prompt": f"{n}?", "answer": "yes"} for n in range(40)])
    write(toy, "new.jsonl", [{"id": f"toy:{n}", "text": "yes"} for n in range(40)])
    assert replay(toy, "new.jsonl", "--adaptive-eval-baseline=replay:old.json").ret == 0
    assert dict(toy.outcomes())["toy-accuracy[not-worse-than-0.1-baseline]"] == "PASS"


ASKED = Item("q", "What is 2 + 5?", "7", "numeric", choices=("7", "8"), images=("a.png",), root="ROOT")
CHAT = Item("q", "", "7", "numeric", messages=({"role": "user", "content": "What is 2 + 5?"},))
TURNS = Item("q", "What is 2 + 5?", "7", "numeric", turns=("And once more?",))
TOOLS = Item("q", "What is 2 + 5?", "7", "numeric", tools=({"type": "function", "function": {"name": "add"}},))
SYSTEM, FORM = Presentation(system="Be brief."), Presentation("Question: {prompt}\nAnswer:")
SHOTS = Presentation("{examples}{prompt}", (Example("What is 1 + 1?", (), "2"),))


def picture(folder: Path, colour: str) -> None:
    Image.new("RGB", (4, 4), colour).save(folder / "a.png")


def logged(item: Item, presentation: Presentation | None, **facts: Any) -> LoggedAnswer:
    """Return an answer as a record has it."""
    asked = with_choices(item) if presentation is None else presentation.present(item)
    recorded = None if presentation is None else PresentationRecord.from_json(presentation.to_json())
    answer = {"item_hash": asked.content_hash, "question": question_hash(asked), **facts}
    return LoggedAnswer(Completion("It is 7.", score=1.0), presentation=recorded, **answer)


@pytest.mark.fast_rows(4)
@pytest.mark.parametrize(
    ("before", "then", "after", "now", "expected"),
    [
        (ASKED, None, ASKED, None, "taken"),
        (ASKED, None, replace(ASKED, prompt="What is 2 + 6?"), None, "edited"),
        (ASKED, None, replace(ASKED, prompt="What is 2 + 5? "), None, "edited"),
        (ASKED, None, replace(ASKED, prompt="Say 7."), None, "edited"),
        (ASKED, None, replace(ASKED, choices=("7", "9")), None, "edited"),
        (ASKED, None, replace(ASKED, choices=("8", "7")), None, "edited"),
        (ASKED, None, replace(ASKED, choices=()), None, "edited"),
        (ASKED, None, replace(ASKED, images=()), None, "edited"),
        (ASKED, None, "another picture", None, "edited"),
        (ASKED, None, replace(ASKED, answer="8"), None, "taken"),
        (ASKED, None, replace(ASKED, answer="8", others=("9",)), None, "taken"),
        (ASKED, None, replace(ASKED, grader="contains"), None, "taken"),
        (ASKED, None, replace(ASKED, category=("sums",)), None, "taken"),
        (ASKED, None, replace(ASKED, meta={"tolerance": 1}), None, "taken"),
        (CHAT, None, replace(CHAT, messages=({"role": "user", "content": "Say 7."},)), None, "edited"),
        (CHAT, None, replace(CHAT, messages=({"role": "system", "content": "S"}, *CHAT.messages)), None, "edited"),
        (CHAT, None, replace(CHAT, answer="8"), None, "taken"),
        (TURNS, None, replace(TURNS, turns=("And now?",)), None, "edited"),
        (TURNS, None, replace(TURNS, turns=()), None, "edited"),
        (TOOLS, None, replace(TOOLS, tools=()), None, "edited"),
        (ASKED, None, ASKED, SYSTEM, "otherwise"),
        (ASKED, SYSTEM, ASKED, None, "otherwise"),
        (ASKED, SYSTEM, ASKED, SYSTEM, "taken"),
        (ASKED, SYSTEM, replace(ASKED, answer="8"), SYSTEM, "taken"),
        (ASKED, SYSTEM, replace(ASKED, prompt="Say 7."), SYSTEM, "edited"),
        (ASKED, FORM, ASKED, None, "otherwise"),
        (ASKED, FORM, replace(ASKED, prompt="Say 7."), FORM, "edited"),
        (TOOLS, SHOTS, TOOLS, None, "otherwise"),
        (TOOLS, SHOTS, TOOLS, SHOTS, "taken"),
        (TOOLS, SHOTS, TOOLS, FORM, "otherwise"),
    ],
)
def test_an_answer_belongs_to_the_question_that_was_asked(
    tmp_path: Path, before: Item, then: Presentation | None, after: Any, now: Presentation | None, expected: str
) -> None:
    picture(tmp_path, "red")
    answer = logged(replace(before, root=str(tmp_path)), then)
    if after == "another picture":
        picture(tmp_path, "blue")
        after = before
    plain = replace(after, root=str(tmp_path))
    today = with_choices(plain) if now is None else now.present(plain)
    model = LogReplay("m", {"q": [answer]}, "record.json", [])
    assert model.find(today).text == ("" if expected == "edited" else "It is 7.")
    assert [("edited since" in text) for text in model.warnings] == [True] * (expected == "edited")
    assert [("another system text" in text) for text in model.notes] == [True] * (expected == "otherwise")
    taken = LogReplay("m", {"q": [answer]}, "record.json", [], edited=True)
    assert taken.find(today).text == "It is 7."
    assert bool(taken.warnings) is (expected == "edited")


def test_records_of_versions_that_kept_no_question_join_by_id_with_a_note() -> None:
    answer = logged(TOOLS, None, question="")
    model = LogReplay("m", {"q": [answer]}, "record.json", [])
    assert model.find(TOOLS).text == "It is 7."
    assert model.notes == []
    assert model.find(replace(TOOLS, answer="8")).text == "It is 7."
    (note,) = model.notes
    assert note.startswith("1 question joined by id alone")


def test_several_answers_are_graded_by_a_corrected_key() -> None:
    model = LogReplay("m", {"q": [logged(TOOLS, None), logged(TOOLS, None)]}, "record.json", [])
    assert model.find(TOOLS).score == 1.0
    assert model.find(replace(TOOLS, answer="8")).score == 0.0


def test_answers_to_edited_questions_are_counted_and_taken_on_request(toy: Any) -> None:
    write(toy, "toy.jsonl", [{"id": f"q{n}", "prompt": f"Is {n}?", "answer": "yes"} for n in range(40)])
    result = replay(toy, "first.json")
    assert result.ret == 1
    assert "20 questions edited since the record" in result.stdout.str()
    (toy.path / "pytest.ini").write_text("[pytest]\nadaptive_eval_model_options =\n    edited = true\n")
    result = replay(toy, "first.json")
    assert result.ret == 0
    assert "20 questions edited since the record" in result.stdout.str()
