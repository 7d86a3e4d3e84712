"""AutoJudger in pytest: settings, reasons, records, and what is refused."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.evaluation.spending import Spending
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.records.parts import AgentRecord, InterviewerRecord
from pytest_adaptive_eval.text import number

CLIP = Path(__file__).resolve().parents[3] / "fixtures" / "checkpoints" / "clip"
TEST = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.bank", selector="autojudger"{more})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.3)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def project(lab: Any, more: str = "", **toy: Any) -> None:
    if not (lab.path / "toy.bank").exists():
        lab.calibrated(n=120)
    lab.toy(**toy)
    lab.tests(TEST.format(more=more))


def test_an_interviewer_by_code_leads_and_says_why(lab: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    project(lab, ", budget=60, stop='budget'")
    run = lab.run("-n0")
    assert run.ret == 0
    assert (
        "toy: interviewer by code; embeddings: parameter factors of the bank, since no encoder is configured"
        in " ".join(run.stdout.str().split())
    )
    (interview,) = lab.record["interviews"]
    reasons = [a["reason"] for a in interview["administrations"]]
    own = [reason for reason in reasons if reason.startswith("chosen because ")]
    drawn = [reason for reason in reasons if reason == "drawn uniformly, as 50% of the questions are"]
    assert len(own) + len(drawn) == len(reasons)
    assert len(own) > 5
    assert len(drawn) > 5
    assert own[0].startswith("chosen because it is one of the first 10 questions")
    said = interview["interviewer"]
    assert said["interviewer"]["name"] == "deterministic"
    assert said["embeddings"] == "parameter factors"
    assert sum(row["count"] for row in said["memory"][0]) == len(reasons)
    assert interview["policy"]["settings"]["candidates"] == 5
    assert interview["policy"]["batch"] == 1
    assert lab.outcomes() == [("test_gate", "PASS")]
    page = lab.path / "page.html"
    assert main(["report", str(next(lab.path.glob(".adaptive-eval/runs/*.json"))), "--html", str(page)]) == 0
    assert "window of chances" in page.read_text()


@pytest.mark.parametrize("setting", ['selector="autojudger"', 'policy="autojudger-paper"'])
def test_without_a_gate_no_question_is_drawn_uniformly(lab: Any, setting: str) -> None:
    lab.calibrated(n=120)
    lab.toy()
    question = TEST.partition("@pytest.mark.adaptive_gate")[0].replace('selector="autojudger"', setting)
    lab.tests(question.format(more=", budget=31"))
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    reasons = [a["reason"] for a in interview["administrations"]]
    first = [reason for reason in reasons if "one of the first 10 questions" in reason]
    assert (len(first), len(reasons)) == (10, 31)
    assert not any("uniformly" in reason for reason in reasons)
    assert interview["policy"]["floor"] == 0.0
    assert interview["policy"]["estimator"] == ("bisection" if "paper" in setting else "map")


def test_a2_judger_records_and_shows_abilities_by_category(lab: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    lab.calibrated(n=120)
    lab.toy()
    question = TEST.partition("@pytest.mark.adaptive_gate")[0]
    lab.tests(question.replace('selector="autojudger"', 'policy="a2-judger"').format(more=", budget=31"))
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    assert interview["policy"]["settings"]["profile"] is True
    assert interview["policy"]["estimator"] == "map-wide"
    memory = interview["interviewer"]["memory"][0]
    assert all(row["standard_error"] > 0 for row in memory)
    assert sum("; the ability in " in a["reason"] for a in interview["administrations"]) == 21
    page = lab.path / "page.html"
    assert main(["report", str(next(lab.path.glob(".adaptive-eval/runs/*.json"))), "--html", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "The interviewer&#39;s memory" in text
    assert all(f"±\u00a0{number(row['standard_error'], 2)}<" in text for row in memory)


def test_a_profile_without_memory_is_a_usage_error(lab: Any) -> None:
    project(lab, ", budget=30, interview={'profile': True, 'memory': False}")
    run = lab.run()
    assert run.ret == 4
    assert "profile is true with agent True, memory False" in " ".join((run.stdout.str() + run.stderr.str()).split())


def test_the_same_seed_leads_the_same_interview_and_another_another(lab: Any) -> None:
    project(lab, ", budget=40")

    def asked(seed: int) -> list[str]:
        lab.run(f"--adaptive-eval-seed={seed}", "--adaptive-eval-fresh")
        return [a["item"] for a in lab.record["interviews"][0]["administrations"]]

    first = asked(3)
    assert asked(3) == first
    assert asked(4) != first


def test_switches_reach_the_interview(lab: Any) -> None:
    switches = {"first": "random", "count": 3, "candidates": 7, "memory": False, "window": (0.1, 0.9)}
    project(lab, f", budget=30, floor=0.1, interview={switches!r}")
    lab.run()
    (interview,) = lab.record["interviews"]
    settings = interview["policy"]["settings"]
    assert {name: settings[name] for name in switches} == {**switches, "window": [0.1, 0.9]}
    assert "one of the first 3 questions, which were drawn uniformly" in interview["administrations"][0]["reason"]
    assert interview["interviewer"]["memory"] == [[]]
    project(lab, ", budget=30, interview={'agent': False, 'window': False}")
    lab.run()
    (interview,) = lab.record["interviews"]
    assert interview["interviewer"]["interviewer"] is None
    assert interview["interviewer"]["window"] == "off"


def test_toml_and_a_plain_bank(lab: Any) -> None:
    lab.bank(n=80)
    lab.toy()
    (lab.path / "adaptive-eval.toml").write_text(
        '[[eval]]\nbank = "toy.jsonl"\nselector = "autojudger"\nbudget = 30\n'
        '[eval.interview]\nfirst = "random"\ncandidates = 3\n'
    )
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    assert interview["interviewer"]["embeddings"] == "categories"
    assert interview["interviewer"]["window"].startswith("off: ")


def test_without_a_floor_it_may_not_feed_a_gate(lab: Any) -> None:
    project(lab, ", floor=0.0, budget=20")
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the selector 'autojudger' gives items no certain propensity*"])


@pytest.mark.slow
def test_an_interview_that_was_cut_off_goes_on_as_it_began(lab: Any) -> None:
    project(lab, ", budget=40, stop='budget'", fault="if n == 15: os.kill(os.getpid(), signal.SIGKILL)")
    lab.spawn()
    before = lab.asked
    assert len(before) == 15
    project(lab, ", budget=40, stop='budget'")
    assert lab.run().ret == 0
    administrations = lab.record["interviews"][0]["administrations"]
    assert sum(a["resumed"] for a in administrations) == 14
    assert len(lab.asked) == 15 + 26


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", interview={'candidate': 3}", "unknown setting 'interview.candidate'; did you mean 'candidates'?"),
        (", interview={'candidates': '3'}", "interview.candidates is '3', expected a whole number"),
        (", interview={'candidates': 0}", "candidates is 0, expected a whole number of at least 1"),
        (", interview={'count': True}", "interview.count is True, expected a whole number"),
        (", interview={'first': 'best'}", "interview.first is 'best', expected 'cluster' or 'difficulty' or"),
        (", interview={'window': [0.8, 0.2]}", "window is (0.8, 0.2), expected two chances"),
        (
            ", interview={'window': [0.8]}",
            "interview.window is [0.8], expected a list of 2 (a number each) or false",
        ),
        (", interview={'mode': 'rate'}", "interview.mode goes with interview.interviewer, a model, and there is none"),
        (
            ", interview={'interviewer': 'nowhere'}",
            "interview.interviewer is 'nowhere': expected an existing checkpoint",
        ),
        (", interview={'interviewer': '.', 'mode': 'guess'}", "interview.mode is 'guess', expected 'rate' or 'reply'"),
        (", interview={'retrieval': 'near'}", "interview.retrieval is 'near', expected 'farthest' or"),
    ],
)
def test_mistakes(lab: Any, more: str, message: str) -> None:
    project(lab, more)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in " ".join(result.stderr.str().split())


@pytest.mark.slow
def test_more_mistakes(lab: Any) -> None:
    lab.calibrated()
    lab.toy()
    lab.tests(TEST.format(more="").replace('selector="autojudger"', 'interview={"count": 3}'))
    assert "interview goes with selector = 'autojudger'" in lab.run().stderr.str()
    folder = lab.path / "empty"
    folder.mkdir()
    ungated = TEST.partition("@pytest.mark.adaptive_gate")[0]
    lab.tests(ungated.format(more=", interview={'interviewer': 'empty', 'count': 1}"))
    result = lab.spawn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    complaint = "empty has no config.json" if find_spec("transformers") else "pytest-adaptive-eval[hf]"
    assert complaint in result.stderr.str()
    assert not lab.records
    lab.tests(ungated.format(more=", interview={'encoder': 'nothing-like-that'}"))
    assert lab.spawn().ret == pytest.ExitCode.USAGE_ERROR
    assert "nothing-like-that" in lab.record["interviews"][0]["error"]


#: A model that counts 100 FLOPs an answer.
COUNTING = """
import pytest
from pytest_adaptive_eval.models import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.base import Usage

class Counting(Model):
    usage = Usage(7, 70, 7, 0, 1.0, 700.0)

    def answer(self, items):
        self.usage += Usage(len(items), 10 * len(items), len(items), 0, 0.5, 100.0 * len(items))
        return [Completion("right") for _ in items]

@pytest.fixture(scope="module")
def model():
    return Counting(SubjectIdentity("counting", "hash"))
"""


def test_what_it_cost(lab: Any) -> None:
    lab.calibrated(n=120)
    lab.pytester.makeconftest(COUNTING)
    lab.tests(TEST.format(more=", budget=30, stop='budget'"))
    assert lab.run().ret == 0
    costs = lab.record["interviews"][0]["costs"]
    assert costs["subject"] == {
        "calls": 30,
        "prompt_tokens": 300,
        "completion_tokens": 30,
        "reasoning_tokens": 0,
        "seconds": 15.0,
        "flops": 3000.0,
        "money": 0.0,
    }
    assert costs["relative"] == 0.25
    assert costs["interviewer"] is None


@pytest.mark.slow
def test_what_the_embeddings_cost(lab: Any) -> None:
    pytest.importorskip("open_clip", reason="encoders need open_clip (extra clip)")
    lab.calibrated(n=120)
    lab.pytester.makeconftest(COUNTING)
    lab.tests(TEST.format(more=f", budget=30, stop='budget', interview={{'encoder': {str(CLIP)!r}}}"))
    for cached in (False, True):
        assert lab.spawn().ret == 0
        interview = lab.record["interviews"][0]
        flops = interview["interviewer"]["embedding_flops"]
        assert (flops == 0) == cached
        assert interview["costs"]["relative"] == pytest.approx((3000 + flops) / (100 * 120))


def test_a_ratio_of_flops_needs_those_of_the_interviewer() -> None:
    def relative(flops: float) -> float | None:
        account = InterviewerRecord(AgentRecord(usage=Usage(5, 50, 5, 0, 1.0, flops)))
        found = Spending().costs(Usage(10, 100, 10, 0, 1.0, 300.0), account, Usage(), 30)
        assert found.interviewer is not None
        assert found.interviewer.calls == 5
        return found.relative

    assert relative(150.0) == pytest.approx(0.5)  # of 30 questions at 30 each
    assert relative(0.0) is None  # a server does not tell
