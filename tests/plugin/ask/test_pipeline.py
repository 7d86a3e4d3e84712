"""Questions are asked ahead of their tests, and no result depends on it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion, failure

FRESH = "--adaptive-eval-fresh"
EVALUATION = """
[[eval]]
name = "{name}"
bank = "{name}.jsonl"
budget = 40
model = "{url}#m"
model_options = {{ concurrency = {concurrency} }}
[[eval.gate]]
at_least = {at_least}
"""
PYTHON = """
import pytest
from pytest_adaptive_eval.models.endpoint.model import EndpointModel

@pytest.fixture(scope="module")
def model():
    return EndpointModel.load("{url}", "m", concurrency=12)

@pytest.mark.adaptive_eval("one.jsonl", budget=40, stop="budget")
def test_one(item, model):
    assert item.grade(model.generate({request}))

@pytest.mark.adaptive_gate("one", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


BATCHES = """
import pytest
from pytest_adaptive_eval import Completion, Model, SubjectIdentity

class Batches(Model):
    shared_batch = {batch}
    def answer(self, items):
        with open("calls.txt", "a") as file:
            file.write(f"{{len(items)}}\\n")
        return [Completion("right" if int(item.id.split("-")[1]) % 7 else "wrong") for item in items]

@pytest.fixture(scope="module")
def model():
    return Batches(SubjectIdentity("batches", "hash", {{"temperature": 0}}))

@pytest.mark.adaptive_eval("one.jsonl", budget=40)
def test_one(item, model):
    assert item.grade(model.generate(item))

@pytest.mark.adaptive_gate("one", at_least=0.4)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


class Busy:
    """Answers by the question alone, and notes how many requests were open at the same time.

    The first requests wait until `expected` are open, or for ten seconds.
    """

    def __init__(self, expected: int) -> None:
        self.expected, self.open, self.most = expected, 0, 0
        self.asked: list[str] = []
        self._lock, self._enough = threading.Lock(), threading.Event()

    def __call__(self, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        text = body["messages"][-1]["content"]
        if "question" not in text:  # of the connection
            return completion("m", "right"), 200
        with self._lock:
            self.asked.append(text)
            self.open += 1
            self.most = max(self.most, self.open)
            if self.open >= self.expected:
                self._enough.set()
        self._enough.wait(10.0)
        self._enough.set()
        with self._lock:
            self.open -= 1
        tokens = {"prompt_tokens": len(text), "completion_tokens": 1}
        return completion("m", "right" if sum(map(ord, text)) % 10 < 8 else "wrong", usage=tokens), 200


@pytest.fixture
def served(lab: Any) -> Any:
    """A laboratory with two banks, for one address of a server."""
    for name in ("one", "two"):
        lines = [{"id": f"{name}-{i}", "prompt": f"question {name} {i}", "answer": "right"} for i in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    lab.port = 0
    return lab


def run(
    lab: Any, expected: int, *flags: str, answer: Any = None, concurrency: int = 12, at_least: float = 0.5,
    names: tuple[str, ...] = ("one", "two"), write: Callable[[str], None] | None = None,
) -> tuple[Any, Busy]:  # fmt: skip
    """The record of a run, the answers to which are those of `answer`, if any, or else of a busy server."""
    busy = Busy(expected)
    with JsonServer(["m"], busy if answer is None else lambda *args: answer(busy, *args), port=lab.port) as server:
        lab.port = server.port  # the address is in the records
        if write is None:
            text = "".join(
                EVALUATION.format(name=name, url=server.url, concurrency=concurrency, at_least=at_least)
                for name in names
            )
            (Path(lab.path) / "adaptive-eval.toml").write_text(text)
        else:
            write(server.url)
        lab.result = lab.run(*flags)
    return lab.record_without("run", "started", "seconds", "resumed", "costs", "cost", "notes", "call_sizes"), busy


def answers(record: Any) -> list[list[Any]]:
    """Items, scores and propensities of each interview, and its stop."""
    return [
        [*((a["item"], a["score"], f"{a['propensity']:.9f}") for a in interview["administrations"]), interview["stop"]]
        for interview in record["interviews"]
    ]


@pytest.mark.slow
def test_as_many_calls_as_allowed_are_open_and_the_answers_are_those_of_one_at_a_time(served: Any) -> None:
    alone, one_by_one = run(served, 1, FRESH, concurrency=1, at_least=0.75)
    together, busy = run(served, 12, FRESH, at_least=0.75)
    assert served.result.ret in (0, 1), served.result.outlines
    assert (one_by_one.most, busy.most) == (1, 12)
    for one, other in zip(answers(together), answers(alone), strict=True):  # slow answers may not be needed
        assert [(item, chance) for item, _, chance in one[: len(other) - 1]] == [
            (item, chance) for item, _, chance in other[: len(one) - 1]
        ]
        assert all(a[1] == b[1] for a, b in zip(one[:-1], other[:-1], strict=False) if a[1] is not None)
        assert one[-1] == other[-1]
    verdicts = [[gate["verdict"]["outcome"] for gate in record["gates"]] for record in (together, alone)]
    assert verdicts[0] == verdicts[1]
    asked = sum(len(interview["administrations"]) for interview in alone["interviews"])
    assert asked <= len(one_by_one.asked) <= asked + 4 * 2  # few answers are not needed
    assert len(busy.asked) == len(set(busy.asked))


@pytest.mark.slow
def test_a_later_interview_fills_what_an_earlier_one_leaves(served: Any) -> None:
    for name in ("one", "two"):
        path = served.path / f"{name}.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:7]))

    def write(url: str) -> None:
        text = "".join(
            EVALUATION.format(name=name, url=url, concurrency=12, at_least=0.5).replace(
                "budget = 40", 'budget = "100%"'
            )
            for name in ("one", "two")
        )
        (Path(served.path) / "adaptive-eval.toml").write_text(text.replace("model =", 'stop = "budget"\nmodel ='))

    record, busy = run(served, 12, FRESH, write=write)
    assert busy.most == 12
    assert len(busy.asked) == 14
    assert [len(interview["administrations"]) for interview in record["interviews"]] == [7, 7]
    assert [interview["subject"]["name"] for interview in record["interviews"]] == ["m", "m"]


@pytest.mark.slow
def test_a_question_that_fails_ahead_of_its_test_is_an_error_of_its_own(served: Any) -> None:
    first, _ = run(served, 1, FRESH, at_least=0.9, names=("one",))
    failing = first["interviews"][0]["administrations"][5]["item"].replace("-", " ")

    def answer(busy: Busy, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        reply = busy(body, headers)
        return (failure("no"), 400) if body["messages"][-1]["content"].endswith(failing) else reply

    record, busy = run(served, 1, FRESH, answer=answer, at_least=0.9, names=("one",))
    assert record["interviews"][0]["statuses"]["error"] == 1
    assert len(busy.asked) == len(set(busy.asked))
    assert record["interviews"][0]["administrations"][5]["status"] == "error"


@pytest.mark.slow
@pytest.mark.parametrize(("request_text", "most"), [("item", 12), ("item.prompt", 12), ("'Think. ' + item.prompt", 1)])
def test_a_test_that_asks_its_item_is_asked_ahead_and_no_other(served: Any, request_text: str, most: int) -> None:
    def write(url: str) -> None:
        served.tests(PYTHON.format(url=url, request=request_text))

    record, busy = run(served, most, FRESH, write=write)
    assert served.result.ret == 0, served.result.outlines
    assert busy.most == most
    assert len(busy.asked) == 40  # each once, and in the form of the test
    assert all(text.startswith("Think") == (most == 1) for text in busy.asked)
    assert len(record["interviews"][0]["administrations"]) == 40


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 6, 17])
def test_a_killed_run_goes_on_from_the_answers_that_were_asked_ahead(served: Any, at: int) -> None:
    served.pytester.makeconftest(
        f"""
        import os
        from pathlib import Path
        reports = []
        def pytest_runtest_logreport(report):
            reports.append(report.when == "call")
            if sum(reports) == {at} and Path("kill").exists():
                os._exit(9)
        """
    )
    whole, _ = run(served, 1, FRESH, at_least=0.75, names=("one",))
    (served.path / "kill").touch()
    busy = Busy(1)
    with JsonServer(["m"], busy, port=served.port):
        assert served.spawn(FRESH).ret == 9
    (served.path / "kill").unlink()
    before = set(busy.asked)
    again, busy = run(served, 1, at_least=0.75, names=("one",))
    assert answers(again) == answers(whole)
    assert len(before & set(busy.asked)) <= 12  # only what was open at the kill is asked again
    assert len(before | set(busy.asked)) <= len(whole["interviews"][0]["administrations"]) + 12


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("batch", [8, 64, 16])
def test_questions_and_verdict_do_not_depend_on_what_a_call_holds(served: Any, batch: int) -> None:
    served.tests(BATCHES.format(batch=batch))
    assert served.run().ret == 0
    (interview,) = served.record["interviews"]
    calls = [int(line) for line in (served.path / "calls.txt").read_text().split()]
    assert (interview["asked"], interview["stop"]) == (13, "DECISION")
    assert max(calls) <= batch
    assert sum(calls) >= 13
    recorded = Counter({int(size): count for size, count in interview["call_sizes"].items()})
    assert recorded == Counter(calls)


@pytest.mark.slow
@pytest.mark.parametrize(("hangs", "awaited"), [(0.5, True), (30.0, False)])
def test_an_answer_that_the_verdict_does_not_need_is_awaited_for_two_seconds(
    served: Any, hangs: float, awaited: bool
) -> None:
    """The headline is that of the draws before it, and no half point for what was not awaited."""
    ended = threading.Event()

    def answer(busy: Busy, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        text = body["messages"][-1]["content"]
        with busy._lock:
            busy.asked += [text] * ("question" in text)
            fifth = "question" in text and len(busy.asked) == 5
        if fifth:
            ended.wait(hangs)
        return completion("m", "right"), 200

    record, _ = run(served, 1, FRESH, answer=answer, names=("one",))
    ended.set()
    (interview,), (gate,) = record["interviews"], record["gates"]
    scores = [a["score"] for a in interview["administrations"]]
    assert gate["verdict"]["outcome"] == "PASS"
    assert gate["verdict"]["interval"]["estimate"] == interview["accuracy"]["estimate"] == 1.0
    assert (None in scores) != awaited
    assert interview["statuses"].get("not_awaited", 0) == scores.count(None)
    if not awaited:
        assert "1 not awaited" in " ".join(" ".join(served.result.outlines).split())
        assert (
            f"1 not awaited: the estimate is that of the {scores.index(None)} draws before"
            in gate["verdict"]["sentence"]
        )
