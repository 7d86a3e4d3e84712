"""Exit codes of small runs and of verbs, and which keys TOML files take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import golden_project
import golden_records
from golden_project import FIXTURES, items, run, write

EVAL = '[[eval]]\nbank = "b.jsonl"\nbudget = "100%"\nmodel = "table:{share}"\n'
GATE = "[[eval.gate]]\nat_least = {at_least}\n"
WORSE = '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n'
ON = "--adaptive-eval"
PYTHON = """
import pytest

@pytest.mark.adaptive_eval("b.jsonl", budget=20)
def test_b(item, model):
    {body}

def test_gate(adaptive_eval):
    {gate}
"""
GRADED = "assert item.grade(model.generate(item))"
AT_LEAST = 'assert adaptive_eval["b"].accuracy.at_least(0.5)'


def toml(share: int = 95, at_least: float | None = 0.5, more: str = "") -> dict[str, str]:
    """Return the files of an evaluation of 20 items of a subject that has so many of 100 right, with its gate."""
    gate = "" if at_least is None else GATE.format(at_least=at_least)
    return {"adaptive-eval.toml": EVAL.format(share=share) + gate + more}


def python(body: str = GRADED, gate: str = AT_LEAST, **more: str) -> dict[str, str]:
    """Return the files of an evaluation in Python."""
    return {"test_b.py": PYTHON.format(body=body, gate=gate), **more}


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
    "in Python, failing": (python(), [ON, "--adaptive-eval-model=table:5"], 1),
    "a gate that is not asserted": (python(gate='adaptive_eval["b"].accuracy.at_least(1.0)'), [ON, MODEL], 1),
    "a grade that is not asserted": (python(body="item.grade('no')"), [ON, MODEL], 4),
    "a fault in a test": (python(body="raise OSError('down')"), [ON, MODEL], 1),
    "a gate on an unknown evaluation": (python(gate='adaptive_eval["c"].accuracy.at_least(0.5)'), [ON, MODEL], 4),
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
            gate='assert adaptive_eval["b"].accuracy.at_least(0.1)',
        ),
        [ON, MODEL],
        0,
    ),
}  # fmt: skip
#: Arguments and the exit code of verbs, in a folder with the stored records, a bank and responses.
VERBS: dict[str, tuple[list[str], int]] = {
    "version": (["--version"], 0),
    "no verb": ([], 4),
    "unknown verb": (["ask"], 4),
    "unknown option": (["history", "--all"], 4),
    "plan": (["plan", "toy.bank"], 0),
    "plan without a bank": (["plan", "none.bank"], 4),
    "history": (["history"], 0),
    "history that is not there": (["history", "--from", "nowhere"], 4),
    "report of an unknown run": (["report", "2001"], 4),
    "report of a damaged record": (["report", "b.jsonl"], 4),
    "compare with nothing in common": (["history", "--compare", "20310501", "2031050"], 4),
    "drift": (["history", "--drift"], 0),
    "rescore": (["gate", "--rescore", "20310502", "--gates", "easy.toml", "-o", "again.json"], 0),
    "rescore that fails": (["gate", "--rescore", "20310502", "--gates", "hard.toml", "-o", "failed.json"], 1),
    "rescore with an unknown bank": (["gate", "--rescore", "20310502", "--bank", "toy=none.bank"], 4),
    "merge one twice": (["merge", "20310501", "20310501", "-o", "merged.json"], 4),
    "correlate nothing": (["history", "--correlate", "--evaluation", "none"], 4),
    "calibrate": (["calibrate", "matrix.csv", "--policy", "none"], 0),
    "calibrate noise": (["calibrate", "noise.csv", "--policy", "none"], 1),
    "calibrate a bank": (["calibrate", "b.jsonl"], 4),
    "backtest of an unknown policy": (["backtest", "matrix.csv", "--policy", "ask"], 4),
    "refine without formats": (["bank", "refine", "matrix.csv"], 4),
}


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


def verb_codes(folder: Path) -> dict[str, int]:
    """Return the exit codes of all verbs."""
    rows = golden_project.matrix().splitlines()
    noise = rows[:1]
    for number, row in enumerate(rows[1:], 3):
        cells = ("01"[number * place % 7 % 2] for place in range(60))
        noise.append(",".join([row.partition(",")[0], *cells]))
    gates = '[[eval]]\nname = "{}"\nbank = "toy.bank"\n[[eval.gate]]\nat_least = {}\n'
    golden_records.project(
        folder,
        {
            "b.jsonl": items(20), "matrix.csv": "\n".join(rows) + "\n", "noise.csv": "\n".join(noise) + "\n",
            "easy.toml": gates.format("toy", 0.01), "hard.toml": gates.format("toy", 0.99),
        },
    )  # fmt: skip
    golden_records.place_records(folder)
    found = run(folder, [(folder, "adaptive-eval", arguments) for arguments, _ in VERBS.values()])
    return dict(zip(VERBS, found, strict=True))


# Keys of TOML files

#: Where the key goes.
HERE = "@here"

_BANK = '[[eval]]\nbank = "toy.bank"\nmodel = "table:50"\n'
_TASK = '[[eval]]\ntask = "counting"\nterse = true\nmodel = "table:50"\nlevels = 3\n'
_LED = '[[eval]]\nbank = "toy.bank"\nselector = "autojudger"\nmodel = "table:50"\n[eval.interview]\n'
_STUDY = '[[eval]]\nkind = "{kind}"\nmodel = "http://127.0.0.1:1/v1#a"\n'
_PEERS = _STUDY.format(kind="peers") + 'peers = ["http://127.0.0.1:1/v1#b", "http://127.0.0.1:1/v1#c"]\n'
_NODE = '[[eval.network.node]]\ntask = "counting"\nlevels = 2\n'
_JUDGED = 'models = { judge = "http://127.0.0.1:1/v1#judge" }\n'
_NET = _STUDY.format(kind="network")
_SEVERAL = _NET + 'models = { b = "http://127.0.0.1:1/v1#b", c = "http://127.0.0.1:1/v1#c" }\n[eval.network]\n'
#: By table: a file around the keys, and keys with values that are taken.
KEYS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "eval of a bank": (
        _BANK + HERE,
        {
            "name": ['"n"'],
            "kind": ['"bank"'],
            "category": ['"even"'],
            "policy": ['"decide"', '"estimate"', '"fixed-form"'],
            "selector": [
                '"random"',
                '"spread"',
                '"information"',
                '"variance"',
                '"maximum-information"',
                '"nearest-difficulty"',
                '"stratified"',
                '"cluster"',
                '"autojudger"',
            ],
            "floor": ["0.2", "1"],
            "budget": ["10", '"15%"'],
            "stop": ['"decision"', '"budget"'],
            "standard_error": ["0.5", "1"],
            "batch": ["2"],
            "seed": ["3"],
            "samples": ["2"],
            "repeat": ["2", '"10%"'],
            "estimator": ['"map"', '"map-wide"', '"eap"', '"mle"', '"pseudo-items"'],
        },
    ),
    "eval without a bank of its own": (
        "[[eval]]\n@here",
        {
            "bank": ['"toy.bank"', '"plain.jsonl"'],
            "task": ['"counting"'],
            'bank = "forms.jsonl"\nformats': ['"all"', '["text", "image"]'],
            'bank = "marked.jsonl"\nvalues': ['"written"', '"redrawn"'],
            'bank = "toy.bank"\nmodel = "table:50"\nmodel_options': ["{}"],
            'bank = "toy.bank"\nselector = "autojudger"\ninterview': ["{}"],
        },
    ),
    "eval of a task": (
        _TASK + HERE,
        {
            "kind": ['"ladder"'],
            "queries": ["3"],
            "stop_at": ["0.5", "0"],
            "stop_at = 0.5\nsettle": ["true"],
            "width": ["1.0", "1"],
            "policy": ['"ladder"', '"decide"'],
            "seed": ["2"],
            "scale": [f'"{FIXTURES / "banks" / "text.bank"}"'],
        },
    ),
    "gate": (
        _BANK + "[[eval.gate]]\n@here",
        {
            "at_least": ["0.5", "1"],
            "at_least = 0.5\nmetric": ['"accuracy"', '"ability"'],
            "margin = 0.1\nnot_worse_than": ['"baseline"'],
            'not_worse_than = "baseline"\nmargin': ["0.1"],
            "at_least = 0.5\nconfidence": ["0.9"],
            "at_least = 0.5\non_inconclusive": ['"fail"', '"warn"', '"pass"'],
            'metric = "ability"\nat_least = 0.5\nmethod': ['"draws"', '"likelihood-ratio"'],
        },
    ),
    "gate of ranks": (
        f'[[eval]]\nbank = "{FIXTURES / "banks" / "text.bank"}"\nmodel = "table:50"\n[[eval.gate]]\n@here',
        {"rank_within": ["3"], "above": ['"text-01-300"'], "rank_within = 3\nprobability": ["0.9"]},
    ),
    "gate of a task": (
        _TASK + "[[eval.gate]]\n@here",
        {
            "at_least = 1\nmetric": ['"auc"', '"last_level"'],
            'metric = "auc"\nmargin = 0.5\nnot_worse_than': ['"baseline"'],
        },
    ),
    "gate of formats": (
        f'[[eval]]\nbank = "{FIXTURES / "banks" / "cross.bank"}"\nformats = "all"\nmodel = "table:50"\n'
        "[[eval.gate]]\n@here",
        {
            "at_least = 0.5\nmetric": [
                '"gain"',
                '"accuracy"',
                '"ability.base"',
                '"ability.image"',
                '"ability.text"',
                '"ability.cross"',
            ]
        },
    ),
    "interview": (
        _LED + HERE,
        {
            "encoder": ['"factors"', '"categories"'],
            "first": ['"cluster"', '"difficulty"', '"random"', '"none"'],
            "count": ["4"],
            "window": ["[0.3, 0.7]", "false"],
            "retrieval": ['"farthest"', '"nearest-difficulty"', '"random"'],
            "candidates": ["3"],
            "agent": ["true", "false"],
            "visual": ["false"],
            "memory": ["false"],
            "difficulty": ['"irt"', '"annotated"', '"none"'],
            "part": ['"mean"'],
            'interviewer = "http://127.0.0.1:1/v1#m"\nmode': ['"rate"', '"reply"'],
            'interviewer = "http://127.0.0.1:1/v1#m"\nsort_candidates': ["true"],
            'interviewer = "http://127.0.0.1:1/v1#m"\noptions': ["{}"],
        },
    ),
    "eval of peers": (
        _PEERS + HERE,
        {
            "name": ['"n"'],
            "memory": ["2"],
            "seed": ["1"],
            "model_options": ["{}"],
            "panel": ["{ rounds = 4, topics = ['a'] }"],
        },
    ),
    "panel": (
        _PEERS + "[eval.panel]\n@here",
        {
            "mode": ['"paper"', '"reliability"'],
            "topics": ['["a"]'],
            "difficulties": ["{ hard = 1.0 }", '["hard"]'],
            "criteria": ['["c"]'],
            "rounds": ["4"],
            "retries": ["1"],
            "mean": ["3.0", "3"],
            "median": ["3.0"],
            'mode = "paper"\njudge': ['"b"'],
            "task_tokens": ["64"],
            "answer_tokens": ["64"],
            "rank_tokens": ["16"],
        },
    ),
    "gate of peers": (
        _PEERS + "[[eval.gate]]\n@here",
        {
            "at_least": ["3.0", "3"],
            "rank_within": ["2"],
            "above": ['"b"'],
            "at_least = 3.0\nmetric": ['"score"'],
            "rank_within = 1\nmetric": ['"rank"'],
            "at_least = 3.0\nsubject": ['"b"'],
            "at_least = 3.0\nconfidence": ["0.9"],
            "rank_within = 2\nprobability": ["0.9"],
            "at_least = 3.0\non_inconclusive": ['"fail"', '"warn"', '"pass"'],
        },
    ),
    "eval of a network": (
        _NET + "@here\n[eval.network]\n" + _NODE,
        {"name": ['"n"'], "memory": ["1"], "seed": ["1"], "model_options": ["{}"]},
    ),
    "network": (
        _NET + _JUDGED + '[eval.network]\n@here\nsupervisor = "judge"\n' + _NODE,
        {
            "topology": ['"line"', '"star"', '"tree"', '"hybrid"'],
            "queries": ["3"],
            "stop_at": ["0.5"],
            "interviewer": ['"judge"'],
            'interviewer = "judge"\nquestions': ['"written"', '"rephrased"'],
            "questions": ['"code"'],
            "passing": ["true"],
            "rounds": ["2"],
            "retries": ["1"],
            "seed": ["1"],
            "confidence": ["0.9"],
        },
    ),
    "supervisor": (
        _NET + _JUDGED + "[eval.network]\n" + _NODE + '[eval.network.supervisor]\nmodel = "judge"\n@here',
        {"scheme": ['"yes-no"', '"scale"'], "exchanges": ["1"]},
    ),
    "node": (
        _NET + _JUDGED + '[eval.network]\ntopology = "hybrid"\nsupervisor = "judge"\n' + _NODE + 'name = "first"\n'
        '[[eval.network.node]]\nname = "second"\n@here',
        {
            "task": ['"addition"'],
            "queries = 4\nbank": ['"toy.bank"'],
            'task = "addition"\nlevels': ["2"],
            'task = "addition"\nafter': ['"first"', '["first"]'],
            'task = "addition"\nafter = "first"\nopens_at': ["0.5", "1"],
            'task = "addition"\nweight': ["2", "0.5"],
            'task = "addition"\nqueries': ["2"],
            'task = "addition"\nstop_at': ["0.5"],
            'task = "addition"\ninterviewer': ['"judge"'],
            'task = "addition"\ninterviewer = "judge"\nquestions': ['"written"', '"rephrased"'],
            'task = "addition"\nquestions': ['"code"'],
        },
    ),
    "node of several interviewers": (
        _SEVERAL + 'topology = "star"\n[[eval.network.node]]\ntask = "addition"\nlevels = 2\n' + HERE,
        {"interviewers": ['["b", "c"]']},
    ),
    "node of a panel": (
        _SEVERAL + 'topology = "hybrid"\n[[eval.network.node]]\ntask = "addition"\nlevels = 2\n' + HERE,
        {
            "panel": ['["b", "c"]'],
            'panel = ["b", "c"]\nedges': ['[["b", "c"]]'],
            'panel = ["b", "c"]\ncycles': ["2"],
        },
    ),
    "run": (_BANK + "[run]\n@here", {"required": ['["test_gate"]', "[]"]}),
}


#: Tables each of whose keys is tried with a value of another type too.
MISTAKEN = ("eval of a bank", "gate", "panel")


def keys(folder: Path) -> dict[str, Any]:
    """Return the exit codes of collecting files: of each table with values that are taken, and of each mistake.

    The mistakes are an unknown key in each table, and values of another type in those of `MISTAKEN`.
    """
    marked = {"id": "m1", "prompt": "What is <3> + <4>?", "answer": "7", "grader": "numeric"}
    marked["meta"] = {"answer_expression": "v1 + v2"}  # type: ignore[assignment]
    golden_records.project(folder, {"marked.jsonl": json.dumps(marked) + "\n"})
    found: dict[str, Any] = {}
    runs: dict[tuple[str, str], list[str]] = {}
    for table, (frame, taken) in KEYS.items():
        texts = {}
        for key, values in {**taken, "unknown_key": []}.items():
            for value in values:
                texts[f"{key.replace(chr(10), '; ')} = {value}".replace(str(FIXTURES), "fixtures")] = f"{key} = {value}"
            if table in MISTAKEN or not values:
                wrong = "{ no = 1 }" if not values or values[0][0] != "{" else "7"
                written = [frame.replace(HERE, f"{key} = {wrong}")]
                runs[table, key.rpartition("\n")[2]] = _files(folder, len(runs), written)
        runs[table, ""] = _files(folder, len(runs), [frame.replace(HERE, text) for text in texts.values()])
        found[table] = {"taken": sorted(texts), "codes": {}}
    arguments = [ON, "--collect-only", "-q"]
    codes = run(folder, [(folder, "pytest", [*arguments, *files]) for files in runs.values()])
    for (table, key), code in zip(runs, codes, strict=True):
        if key:
            found[table]["codes"][f"{key} of a wrong type"] = code
        else:
            found[table]["codes"]["all that are taken"] = code
    return found


def _files(folder: Path, number: int, texts: list[str]) -> list[str]:
    """Write files of evaluations and return their names; they stand beside the banks that they name."""
    names = [f"f{number}-{place}.eval.toml" for place in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        text = text if "model = " in text else text.replace("[[eval]]", '[[eval]]\nmodel = "table:50"', 1)
        (folder / name).write_text(text)
    return names
