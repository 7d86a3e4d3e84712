"""Interviews asked side by side have the questions, verdicts and records of those asked one after the other."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval import Item, write_bank

FLAG = "--adaptive-eval-side-by-side"
NAMES = ("one", "two", "three", "four")
CONFTEST = """
import os
from pathlib import Path
import pytest
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity, Usage

HERE = Path(__file__).parent

def log(name, text):
    with (HERE / name).open("a") as file:
        file.write(f"{text}\\n")

def asked():
    path = HERE / "asked.txt"
    return len(path.read_text().split()) if path.exists() else 0

class Model(Subject):
    shared_batch = 24
    spent = Usage()
    usage = property(lambda self: self.spent)

    def answer(self, items):
        return self.answer_each(items, lambda *_: None)

    def answer_each(self, items, arrived):
        log("calls.txt", len(items))
        out = []
        for place, item in enumerate(items):
            if "KILL" in os.environ and asked() == int(os.environ["KILL"]):
                os._exit(9)
            log("asked.txt", f"{item.id}#{item.meta.get('sample', 0)}")
            number = sum(map(ord, item.id)) % 10
            cost = Usage(1, 10 + number, 2)
            self.spent += cost
            out.append(Completion("right" if number < 6 else "wrong", cost=cost))
            arrived(place, out[-1])
        return out

@pytest.fixture(scope="session")
def model():
    return Model(SubjectIdentity("m", "checkpoint", {"temperature": 0}))
"""
GATE = "\n[[eval.gate]]\nat_least = 0.5\n"


@pytest.fixture
def banks(lab: Any) -> Any:
    """A laboratory with a subject that shares calls, and four calibrated banks."""
    rng = np.random.default_rng(5)
    for name in NAMES:
        items = [Item(f"{name}-{i}", prompt=f"question {name} {i}", answer="right") for i in range(60)]
        write_bank(
            lab.path / f"{name}.bank",
            items,
            discrimination=rng.uniform(0.6, 1.8, (60, 1)),
            intercept=rng.normal(size=60),
        )
    lab.pytester.makeconftest(CONFTEST)
    return lab


def write_evals(lab: Any, settings: dict[str, str], gate: str = GATE) -> None:
    text = [f'[[eval]]\nname = "{name}"\nbank = "{name}.bank"\n{settings[name]}\n{gate}' for name in settings]
    (lab.path / "adaptive-eval.toml").write_text("".join(text))


def found(lab: Any) -> Any:
    """The latest record without times and names of runs."""
    return lab.record_without("run", "started", "seconds", "resumed")


def kept(lab: Any) -> dict[str, dict[str, Any]]:
    """Entries of each journal, by its name."""
    return {
        path.name: {
            entry["key"]: entry["data"] for line in path.read_text().splitlines() if (entry := json.loads(line[9:]))
        }
        for path in lab.journals
    }


def forget(lab: Any) -> None:
    for name in ("asked.txt", "calls.txt"):
        (lab.path / name).unlink(missing_ok=True)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("settings", "fewer"),
    [
        ("budget = 40", 2),
        ('policy = "estimate"\nbudget = 12', 3.5),
        ('policy = "fixed-form"\nbudget = 20\nsamples = 2', 1.3),
        ('policy = "fixed-form"\nbudget = 16\nrepeat = 6', 1.3),
    ],
)
def test_records_are_equal_and_calls_fewer(banks: Any, settings: str, fewer: float) -> None:
    write_evals(banks, dict.fromkeys(NAMES, settings), "" if "estimate" in settings else GATE)
    banks.run()
    alone, asked, calls = found(banks), Counter(banks.asked), banks.lines("calls.txt")
    forget(banks)
    banks.run(FLAG)
    assert found(banks) == alone
    assert Counter(banks.asked) == asked
    assert max(asked.values()) == 1
    sizes = list(map(int, banks.lines("calls.txt")))
    assert max(sizes) <= 24
    assert (len(calls) or len(asked)) >= fewer * len(sizes)
    assert [interview["costs"]["subject"]["calls"] for interview in alone["interviews"]] == [
        len(interview["administrations"]) for interview in alone["interviews"]
    ]


@pytest.mark.slow
def test_workers_ask_each_interview_by_itself(banks: Any) -> None:
    write_evals(banks, dict.fromkeys(NAMES, "budget = 24"))
    banks.run()
    alone = found(banks)
    forget(banks)
    for workers in (["-n0"], ["-n2"]):
        banks.spawn(FLAG, *workers)
        assert {i["name"]: i for i in found(banks)["interviews"]} == {i["name"]: i for i in alone["interviews"]}
        assert found(banks)["gates"] == alone["gates"]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "again"), [("decide", [FLAG]), ("estimate", [])])
def test_a_killed_run_asks_nothing_again(banks: Any, monkeypatch: Any, again: list[str], policy: str) -> None:
    write_evals(banks, dict.fromkeys(NAMES, f'policy = "{policy}"\nbudget = 24'), GATE if policy == "decide" else "")
    banks.spawn()
    alone = found(banks)
    forget(banks)
    monkeypatch.setenv("KILL", "38")
    banks.spawn(FLAG)
    assert len(banks.asked) == 38
    monkeypatch.delenv("KILL")
    banks.spawn(*again)
    assert max(Counter(banks.asked).values()) == 1
    administrations = [[a["item"] for a in i["administrations"]] for i in found(banks)["interviews"]]
    assert administrations == [[a["item"] for a in i["administrations"]] for i in alone["interviews"]]
    assert found(banks)["gates"] == alone["gates"]
    assert banks.journals == []


def test_a_run_that_ends_early_keeps_what_was_asked_ahead(banks: Any) -> None:
    write_evals(banks, dict.fromkeys(NAMES, "budget = 40"), "\n[[eval.gate]]\nat_least = 0.95\n")
    banks.run("-x")
    alone = found(banks)
    assert [interview["name"] for interview in alone["interviews"]] == ["one"]
    for path in banks.journals:
        path.unlink()
    forget(banks)
    banks.run(FLAG, "-x")
    assert found(banks) == alone
    ahead = {entry["item"].split("-")[0] for journal in kept(banks).values() for entry in journal.values()}
    assert ahead == {"one", "two", "three"}  # 24 questions a call
    banks.run(FLAG)
    assert max(Counter(banks.asked).values()) == 1
    calls = [i["costs"].get("subject", {}).get("calls", 0) for i in banks.record["interviews"][1:]]
    assert sum(calls) < sum(len(i["administrations"]) for i in banks.record["interviews"][1:])


@pytest.mark.slow
def test_only_selected_interviews_are_asked_ahead(banks: Any) -> None:
    write_evals(banks, dict.fromkeys(NAMES, "budget = 16"))
    file = "adaptive-eval.toml"
    dropped = [f"{file}::two[aeval:two]", f"{file}::two-accuracy[at-least-0.5]"]
    banks.run(FLAG, *(f"--deselect={nodeid}" for nodeid in dropped))
    assert {name.split("-")[0] for name in banks.asked} == {"one", "three", "four"}
    assert banks.lines("calls.txt")[0] == "24"
    assert banks.journals == []


@pytest.mark.slow
def test_answers_of_a_shared_store_are_taken_ahead(banks: Any) -> None:
    write_evals(banks, dict.fromkeys(NAMES, "budget = 16"))
    store = "--adaptive-eval-reuse=known.sqlite"
    banks.run(store)
    asked = len(banks.asked)
    banks.run(store)
    alone = found(banks)
    assert sum(interview["reuse"]["answers"] for interview in alone["interviews"]) == asked
    banks.run(FLAG, store)
    assert found(banks) == alone
    assert len(banks.asked) == asked


@pytest.mark.slow
def test_fresh_answers_that_were_asked_ahead_are_used(banks: Any) -> None:
    write_evals(banks, dict.fromkeys(NAMES, "budget = 16"))
    banks.run(FLAG, "--adaptive-eval-fresh")
    assert max(Counter(banks.asked).values()) == 1


def test_tests_in_python_are_asked_ahead_as_far_as_their_draws_are_known(banks: Any) -> None:
    tests = "import pytest\n"
    for name in NAMES:
        policy = "fixed-form" if name == "four" else "decide"
        tests += f"""
@pytest.mark.adaptive_eval(bank="{name}.bank", budget=16, policy="{policy}")
def test_{name}(item, model):
    item.score(1 - item.grade(model.generate(item)))

def test_{name}_gate(adaptive_eval):
    assert adaptive_eval["{name}"].accuracy.at_least(0.1)
"""
    banks.tests(tests)
    banks.run()
    alone, asked = found(banks), Counter(banks.asked)
    forget(banks)
    banks.run(FLAG)
    assert found(banks) == alone
    assert Counter(banks.asked) == asked
    # first batches of three; the second of the first with the first of the last; the second of the next and of the last
    assert list(map(int, banks.lines("calls.txt")))[:3] == [24, 16, 16]


@pytest.mark.slow
def test_interviews_that_end_early_by_what_must_pass_or_by_cost_ask_the_same(banks: Any) -> None:
    wrong = next(name for name in (f"two-{i}" for i in range(60)) if sum(map(ord, name)) % 10 >= 6)
    settings = {"one": "budget = 40", "two": f'budget = 40\nmust_pass = ["{wrong}"]', "three": "budget_tokens = 320"}
    write_evals(banks, settings)
    banks.run()
    alone, asked = found(banks), Counter(banks.asked)
    assert [interview["stop"] for interview in alone["interviews"][1:]] == ["MUST_PASS", "COST"]
    forget(banks)
    banks.run(FLAG)
    assert found(banks) == alone
    assert Counter(banks.asked) == asked
    assert banks.lines("calls.txt")[0] == "9"  # the item that must pass is asked by itself


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "joins"),
    [
        ("budget = 16", True),
        ("budget = 16\nmax_tokens = 5", False),
        ("budget = 16\nseed = 4", True),
    ],
)
def test_interviews_with_another_cap_are_asked_apart(banks: Any, setting: str, joins: bool) -> None:
    text = CONFTEST.replace("class Model(Subject):", "class Model(Subject):\n    cap = Cap(8, chosen=True)")
    banks.pytester.makeconftest("from pytest_adaptive_eval.models.caps import Cap\n" + text)
    write_evals(banks, {"one": "budget = 16", "two": setting})
    assert banks.run(FLAG).ret in (0, 1)
    assert [i["error"] for i in found(banks)["interviews"]] == ["", ""]
    assert (banks.lines("calls.txt")[0] == "16") == joins


MARKED = """
import pytest

@pytest.mark.adaptive_eval(bank="one.bank", budget=16)
def test_one(item, model):
    assert item.grade(model.generate(item))

@{mark}
@pytest.mark.adaptive_eval(bank="two.bank", budget=16)
def test_two(item, model):
    assert item.grade(model.generate(item))

@pytest.fixture
def other():
    pytest.skip("not today")
"""


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("mark", ["pytest.mark.skip", "pytest.mark.usefixtures('other')"])
def test_interviews_whose_questions_may_not_run_are_not_asked_ahead(banks: Any, mark: str) -> None:
    banks.tests(MARKED.format(mark=mark))
    banks.run(FLAG)
    assert {name.split("-")[0] for name in banks.asked} == {"one"}


def test_a_fault_of_one_interview_leaves_the_others(banks: Any) -> None:
    items = [
        {"id": f"bad-{i}", "prompt": f"question {i}", "answer": "right", "grader": "python:graders:fail"}
        for i in range(60)
    ]
    (banks.path / "bad.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (banks.path / "graders.py").write_text("def fail(text, item):\n    raise ValueError('no grade')\n")
    banks.ini("adaptive_eval_graders = graders\npythonpath = .\n")
    write_evals(banks, dict.fromkeys(NAMES[:2], "budget = 40"))
    path = banks.path / "adaptive-eval.toml"
    path.write_text(path.read_text() + '[[eval]]\nname = "bad"\nbank = "bad.jsonl"\nbudget = 40\n')
    banks.run()
    alone, asked = found(banks), Counter(banks.asked)
    assert alone["interviews"][2]["error"]
    for journal in banks.journals:
        journal.unlink()
    forget(banks)
    banks.run(FLAG)
    assert found(banks) == alone
    assert Counter(banks.asked) == asked


@pytest.mark.slow
def test_an_interview_whose_journal_cannot_be_written_leaves_the_others(banks: Any, monkeypatch: Any) -> None:
    from pytest_adaptive_eval.errors import JournalError
    from pytest_adaptive_eval.records.journal import Journal

    append = Journal.append

    def full(self: Journal, key: str, data: dict[str, Any], **more: Any) -> None:
        if data["item"].startswith("two"):
            raise JournalError(f"{self.path}: disk full")
        append(self, key, data, **more)

    monkeypatch.setattr(Journal, "append", full)
    write_evals(banks, dict.fromkeys(NAMES, "budget = 16"))
    banks.run(FLAG)
    assert {i["name"]: bool(i["error"]) for i in banks.record["interviews"]} == {name: name == "two" for name in NAMES}


LOADING = """
class Named(Model):
    def answer_each(self, items, arrived):
        def renamed(place, completion):
            arrived(place, replace(completion, text=completion.text + self.identity.name))
        return [replace(c, text=c.text + self.identity.name) for c in super().answer_each(items, renamed)]

def pytest_adaptive_eval_subject(spec):
    log("loaded.txt", spec)
    return Named(SubjectIdentity(spec, spec))
"""


def test_evaluations_of_a_file_with_one_model_load_it_once_and_ask_only_it(banks: Any) -> None:
    banks.pytester.makeconftest("from dataclasses import replace\n" + CONFTEST + LOADING)
    models = ("a", "b", "a", "b")
    write_evals(banks, {name: f'budget = 16\nmodel = "{model}"' for name, model in zip(NAMES, models, strict=True)})
    banks.run()
    assert sorted(banks.lines("loaded.txt")) == ["a", "b"]
    alone = found(banks)
    assert [interview["administrations"][0]["text"][-1] for interview in alone["interviews"]] == list(models)
    forget(banks)
    banks.run(FLAG)
    assert found(banks) == alone
    assert [interview["subject"]["name"] for interview in alone["interviews"]] == list(models)
    assert list(map(int, banks.lines("calls.txt"))) == [16, 16, 16, 16]


@pytest.mark.slow
def test_a_checkpoint_answers_alike(lab: Any) -> None:
    pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
    pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
    fixtures = Path(__file__).parents[2] / "fixtures"
    shared = f'bank = "{fixtures.as_posix()}/banks/text.bank"\nmodel = "{fixtures.as_posix()}/checkpoints/text-mid"\n'
    names = ("addition", "counting")
    text = [f'[[eval]]\nname = "{n}"\ncategory = "{n}"\nbudget = 16\n{shared}\n{GATE}' for n in names]
    (lab.path / "adaptive-eval.toml").write_text("".join(text))
    lab.spawn()
    alone = found(lab)
    lab.spawn(FLAG)
    assert found(lab) == alone
    assert all(interview["costs"]["subject"]["completion_tokens"] for interview in alone["interviews"])
