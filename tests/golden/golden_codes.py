"""Exit codes of small runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from golden_project import items, run, write

EVAL = '[[eval]]\nbank = "b.jsonl"\nbudget = "100%"\nmodel = "table:{share}"\n'
GATE = "[[eval.gate]]\nat_least = {at_least}\n"
WORSE = '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n'
ON = "--adaptive-eval"
PYTHON = """
import pytest

@pytest.mark.adaptive_eval("b.jsonl", budget=20)
def test_b(item, model):
    {body}

{mark}
def test_gate(adaptive_eval):
    {gate}
"""
GRADED = "assert item.grade(model.generate(item))"
AT_LEAST = 'assert adaptive_eval["b"].accuracy.at_least(0.5)'


def toml(share: int = 95, at_least: float | None = 0.5, more: str = "") -> dict[str, str]:
    """Return the files of an evaluation of 20 items of a subject that has so many of 100 right, with its gate."""
    gate = "" if at_least is None else GATE.format(at_least=at_least)
    return {"adaptive-eval.toml": EVAL.format(share=share) + gate + more}


def python(body: str = GRADED, gate: str = AT_LEAST, mark: str = "", **more: str) -> dict[str, str]:
    """Return the files of an evaluation in Python."""
    return {"test_b.py": PYTHON.format(body=body, gate=gate, mark=mark), **more}


def marked(name: str = "b", body: str = GRADED) -> dict[str, str]:
    """Return the files of an evaluation in Python with a gate that a mark declares."""
    mark = f'@pytest.mark.adaptive_gate("{name}", at_least=0.5)'
    return python(body, "assert adaptive_eval.verdicts", mark)


PLAIN = {"test_plain.py": "def test_plain():\n    pass\n"}
REQUIRED = {"pytest.ini": "[pytest]\nadaptive_eval_required = true\n"}
MODEL = "--adaptive-eval-model=table:95"
#: Files, arguments and the exit code of runs of pytest.
RUNS: dict[str, tuple[Mapping[str, str], list[str], int]] = {
    "pass": (toml(), [ON], 0),
    "fail": (toml(10), [ON], 1),
    "inconclusive": (toml(60, 0.55, "").copy() | {"b.jsonl": items(200)}, [ON, "--adaptive-eval-budget=10"], 1),
    "inconclusive that warns": (
        toml(60, 0.55, 'on_inconclusive = "warn"\n') | {"b.jsonl": items(200)}, [ON, "--adaptive-eval-budget=10"], 0
    ),
    "inconclusive that passes": (
        toml(60, 0.55, 'on_inconclusive = "pass"\n') | {"b.jsonl": items(200)}, [ON, "--adaptive-eval-budget=10"], 0
    ),
    "wrong answers and no gate": (toml(10, None), [ON], 0),
    "void, without an answer": (toml(-1, None), [ON], 1),
    "void with a gate": (toml(-1), [ON], 1),
    "interrupted": (toml(), [ON], 2),
    "first run against a baseline": (toml(95, 0.5, WORSE), [ON], 0),
    "first run with no other gate": (toml(95, None, WORSE), [ON], 1),
    "first run that must have a baseline": (toml(95, 0.5, WORSE), [ON, "--adaptive-eval-missing-baseline=fail"], 4),
    "first run that records": (
        toml(95, 0.5, WORSE), [ON, "--adaptive-eval-missing-baseline=record", "--adaptive-eval-baseline=new.json"], 0
    ),
    "baseline that is no record": (toml(95, 0.5, WORSE), [ON, "--adaptive-eval-baseline=pytest.ini"], 4),
    "collect only": (toml(), [ON, "--collect-only"], 0),
    "without the flag": (toml(), [], 5),
    "Python without the flag": (python(), [], 0),
    "required without the flag": (toml() | REQUIRED, [], 4),
    "a report without the flag": (PLAIN, ["--adaptive-eval-junit=x.xml"], 4),
    "plain tests without the flag": (PLAIN, [], 0),
    "no evaluation": (PLAIN, [ON], 4),
    "no evaluation is chosen": (toml(), [ON, "-k", "other"], 5),
    "no model": ({"adaptive-eval.toml": '[[eval]]\nbank = "b.jsonl"\n'}, [ON], 4),
    "unknown model": (toml(), [ON, "--adaptive-eval-model=nowhere"], 4),
    "unknown bank": ({"adaptive-eval.toml": '[[eval]]\nbank = "c.jsonl"\n'}, [ON, MODEL], 4),
    "unknown key": (toml(more="[[eval]]\nbanks = 1\n"), [ON], 4),
    "not TOML": ({"adaptive-eval.toml": "[[eval"}, [ON], 4),
    "a seed that is no number": (toml(), [ON, "--adaptive-eval-seed=x"], 4),
    "a seed in the settings that is no number": (
        toml() | {"pytest.ini": "[pytest]\nadaptive_eval_seed = x\n"}, [ON], 4
    ),
    "a damaged bank": (toml() | {"b.jsonl": "{"}, [ON], 4),
    "a required gate that is absent": (toml(more='[run]\nrequired = ["test_gate"]\n'), [ON], 1),
    "in Python": (python(), [ON, MODEL], 0),
    "a mark": (marked(), [ON, MODEL], 0),
    "a mark, failing": (marked(), [ON, "--adaptive-eval-model=table:5"], 1),
    "in Python, failing": (python(), [ON, "--adaptive-eval-model=table:5"], 1),
    "a gate that is not asserted": (python(gate='adaptive_eval["b"].accuracy.at_least(1.0)'), [ON, MODEL], 1),
    "a grade that is not asserted": (python(body="item.grade('no')"), [ON, MODEL], 4),
    "a fault in a test": (python(body="raise OSError('down')"), [ON, MODEL], 1),
    "a gate on an unknown evaluation": (marked("c"), [ON, MODEL], 4),
    "a body on an unknown evaluation": (python(gate='adaptive_eval["c"].accuracy.at_least(0.5)'), [ON, MODEL], 1),
    "every way to say a gate": (
        python(
            gate="""b = adaptive_eval["b"]
    for verdict in (b.accuracy.at_least(0.2, confidence=0.9), b.accuracy.at_least(0.2, on_inconclusive="warn")):
        assert verdict
        assert verdict.outcome == "PASS" and verdict.sentence and verdict.interval.low <= verdict.interval.high
    assert b.asked <= 20 and 0 <= b.interval().low"""
        ),
        [ON, MODEL],
        0,
    ),
    "scores and texts in Python": (
        python(
            body="""assert item.id and item.prompt and item.answer
    item.score(0.5 if item.grade(model.generate(item.prompt)) else 0.25)""",
            gate='assert adaptive_eval["b"].accuracy.at_least(0.4)',
        ),
        [ON, MODEL],
        0,
    ),
}  # fmt: skip


def codes(folder: Path) -> dict[str, int]:
    """Return the exit codes of all runs."""
    runs = []
    for number, (files, arguments, _) in enumerate(RUNS.values()):
        own = {  # modules of one name cannot be imported twice in a process
            f"{name.removesuffix('.py')}_{number}.py" if name.startswith("test_") else name: text
            for name, text in files.items()
        }
        place = write(folder / str(number), {"b.jsonl": items(20), **own})
        runs.append((place, "pytest", arguments))
    stop = list(RUNS).index("interrupted")
    found = run(folder, runs[:stop] + runs[stop + 1 :])
    found.insert(stop, run(folder, [runs[stop]], GOLDEN_STOP="5:stop")[0])
    return dict(zip(RUNS, found, strict=True))
