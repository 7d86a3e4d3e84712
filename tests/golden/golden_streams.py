"""Random streams: which items a seed asks, with which chances, and what is estimated from the answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden_project import (
    FIXTURES,
    asked_items,
    format_responses,
    items,
    matrix,
    measured,
    printed,
    records,
    run,
    write,
)

TEXT, CROSS = FIXTURES / "banks" / "text.bank", FIXTURES / "banks" / "cross.bank"
RESPONSES = FIXTURES / "responses"
CHECKPOINTS = (
    "text-early",
    "text-mid",
    "text-late",
    "text-regressed",
    "text-regressed-mild",
    "text-regressed-addition",
)
SEEDS = 20
#: Families whose truth needs programs to be run in a sandbox.
RUN_CODE = ("code_generation", "code_repair")

#: Settings of interviews of the text bank, by the name of the evaluation.
ON_TEXT = {
    "decide": 'budget = "20%"',
    "decide-budget": 'stop = "budget"\nbudget = 24',
    "decide-one-by-one": 'batch = 1\nstop = "budget"\nbudget = 12',
    "decide-floor": 'floor = 0.2\nstop = "budget"\nbudget = 24',
    "decide-category": 'budget = "30%"\nstop = "budget"',
    "decide-samples": "samples = 2\nbudget = 12",
    "decide-repeat": 'repeat = "50%"\nbudget = 16',
    "decide-standard-error": "stop = 0.6",
    "estimate": 'policy = "estimate"\nbudget = 24',
    "fixed-form": 'policy = "fixed-form"\nbudget = 20',
    "information": 'selector = "information"\nbudget = 16',
    "maximum-information": 'selector = "maximum-information"\nfloor = 0.1\nbudget = 16',
    "nearest-difficulty": 'selector = "nearest-difficulty"\nfloor = 0.1\nbudget = 16',
    "random": 'selector = "random"\nbudget = 16',
    "spread": 'selector = "spread"\nbudget = 16',
    "stratified": 'selector = "stratified"\nbudget = 16',
    "cluster": 'selector = "cluster"\nfloor = 0.1\nbudget = 16',
    "variance": 'selector = "variance"\nbudget = 16',
}
#: Interviews led by code, of a plain bank whose embeddings are of words alone.
LED = {
    "autojudger": "",
    "autojudger-pure": 'policy = "estimate"\n',
    "autojudger-switches": '[eval.interview]\nfirst = "difficulty"\ncount = 4\nretrieval = "nearest-difficulty"\n'
    "candidates = 3\nwindow = [0.3, 0.7]\n",
    "autojudger-nobody": "[eval.interview]\nagent = false\n",
    "autojudger-categories": '[eval.interview]\nencoder = "categories"\n',
    "autojudger-factors": '[eval.interview]\nencoder = "factors"\n',
}
GATES = """
[[eval.gate]]
at_least = 0.6
[[eval.gate]]
metric = "ability"
at_least = 1.0
"""
ON_CROSS = """
[[eval]]
name = "formats"
bank = "{cross}"
formats = "all"
budget = 40
model = "{replay}"
[[eval.gate]]
metric = "gain"
at_least = 0.15
[[eval.gate]]
metric = "ability.cross"
at_least = 0.0
[[eval]]
name = "formats-two"
bank = "{cross}"
formats = ["image+text", "text"]
budget = 24
stop = "budget"
model = "{replay}"
[[eval]]
name = "formats-estimate"
bank = "{cross}"
formats = "all"
policy = "estimate"
budget = 24
model = "{replay}"
"""
#: Ladders of a subject that loses 15 points a level.
LADDERS = {
    "ladder": "queries = 5\nlevels = 4",
    "ladder-stop": "queries = 8\nlevels = 5\nstop_at = 0.5",
    "ladder-settle": "queries = 12\nlevels = 4\nstop_at = 0.5\nstop = 'decision'",
    "ladder-width": "queries = 10\nlevels = 3\nstop = 1.5",
    "ladder-scale": f'queries = 4\nlevels = 3\nbank = "{TEXT}"',
    "ladder-seed": "queries = 5\nlevels = 3\nseed = 11",
    "task-decide": 'policy = "decide"\nqueries = 20\nlevels = 3\nbudget = 16',
}
FAMILIES = (
    "counting", "addition", "operations", "post_order", "unscramble", "grid", "caption", "after", "noise", "icons",
    "scrambled", "masked", "parsing", "decimals", "equations", "path_nodes", "path_density", "instructions", "writing",
    "comprehension",
)  # fmt: skip
#: Settings of the families whose small or terse form is kept.
SMALL = {
    **dict.fromkeys(("grid", "caption", "after", "noise", "icons"), 'size = "small"\n'),
    **dict.fromkeys(
        ("counting", "addition", "operations", "post_order", "unscramble", "comprehension"), 'size = "small"\n'
    ),
}
#: What differs between two runs that found the same, is worded for people, or says where files are.
DROPPED = (
    "administrations", "seconds", "stop_sentence", "notes", "error", "path", "environment", "interviewer", "costs",
    "call_sizes", "sentence", "stated", "nodeid", "categories", "requirement", "journal", "versions", "conditions",
)  # fmt: skip


def without_words(value: Any) -> Any:
    """Return a part of a record without what `DROPPED` names."""
    if isinstance(value, dict):
        return {key: without_words(one) for key, one in value.items() if key not in DROPPED}
    return [without_words(one) for one in value] if isinstance(value, list) else value


def stream(interview: Mapping[str, Any], gates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what an interview asked, in order, and what it found."""
    asked = interview["administrations"]
    return {
        "asked": [f"{one['item']} {one['format']} {one['sample']}" for one in asked],
        "propensity": [one["propensity"] for one in asked],
        "predicted": [one["predicted"] for one in asked],
        "score": [one["score"] for one in asked],
        "found": without_words({key: value for key, value in interview.items() if key not in ("kind", "unit")}),
        "verdicts": [without_words(gate["verdict"]) for gate in gates],
    }


def streams(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the streams of all interviews of a record, by the name of the evaluation and its file."""
    found = {}
    for interview in asked_items(record):
        file = interview["nodeid"].partition("::")[0]
        mine = [gate for gate in record["gates"] if gate["nodeid"].startswith(f"{file}::{interview['name']}-")]
        mine = [gate for gate in mine if gate["interview"] == interview["name"]]
        key = interview["name"] if not file.startswith("seed") else f"{file.partition('.')[0]} {interview['name']}"
        found[key] = stream(interview, mine)
    return found


def _held(folder: Path, files: Mapping[str, str]) -> dict[str, Any]:
    write(folder, files)
    run(folder, [(folder, "pytest", ["--adaptive-eval", "-q"])])
    kept = records(folder)
    assert kept, printed(folder)
    return kept[-1]


def twenty_seeds(folder: Path) -> dict[str, Any]:
    """Return the example of a promotion over twenty seeds, with the released checkpoints in turn."""
    files = {}
    for seed in range(SEEDS):
        replay = f"replay:{RESPONSES / 'released-text.csv.gz'}#{CHECKPOINTS[seed % len(CHECKPOINTS)]}"
        files[f"seed-{seed:02}.eval.toml"] = (
            f'[[eval]]\nname = "text"\nbank = "{TEXT}"\nmodel = "{replay}"\nseed = {seed}\nbudget = "20%"\n{GATES}'
        )
    found = streams(_held(folder, files))
    for one in found.values():
        del one["predicted"]  # the propensities follow from it
    return found


def policies(folder: Path) -> dict[str, Any]:
    """Return interviews by every policy and selector, in formats, and by an interviewer."""
    replay = f"replay:{RESPONSES / 'released-text.csv.gz'}#text-mid"
    again = ("decide-samples", "decide-repeat")  # which a replay cannot answer differently
    parts = [
        f'[[eval]]\nname = "{name}"\nbank = "{TEXT}{"#addition" if name == "decide-category" else ""}"\n'
        + f'model = "{"table:60" if name in again else replay}"\n{settings}\n'
        + (GATES if name in ("decide", "decide-budget") else "")
        for name, settings in ON_TEXT.items()
    ]
    compared = (
        f'[[eval]]\nname = "compared"\nbank = "{TEXT}"\nmodel = "{replay.replace("-mid", "-late")}"\nbudget = "20%"\n'
    )
    parts.append(compared + '[[eval.gate]]\nnot_worse_than = "decide"\nmargin = 0.1\n')
    ranked = '[[eval.gate]]\nrank_within = 30\n[[eval.gate]]\nmetric = "ability"\nat_least = 0.5\n'
    parts.append(f'[[eval]]\nname = "ranked"\nbank = "{TEXT}"\nmodel = "{replay}"\nbudget = 24\n{ranked}')
    cross = ON_CROSS.format(cross=CROSS, replay=f"replay:{RESPONSES / 'released-cross.csv.gz'}#cross-late")
    parts.append(cross)
    for name, settings in LED.items():
        table = '[[eval]]\nname = "{}"\nbank = "{}"\nmodel = "{}"\nbudget = 16\nselector = "autojudger"\n{}'
        parts.append(table.format(name, TEXT, replay, settings))
    return streams(_held(folder, {"policies.eval.toml": "\n".join(parts)}))


def ladders(folder: Path) -> dict[str, Any]:
    """Return climbs of one family in every way, and a short climb of each family."""
    parts = [
        f'[[eval]]\nname = "{name}"\ntask = "counting"\nsize = "small"\nmodel = "table:95"\n{settings}\n'
        + ('[[eval.gate]]\nmetric = "auc"\nat_least = 1.0\n' if name in ("ladder", "ladder-width") else "")
        for name, settings in LADDERS.items()
    ]
    parts += [
        f'[[eval]]\nname = "{name}"\ntask = "{name}"\nmodel = "table:99"\nqueries = 2\nlevels = 2\n'
        + SMALL.get(name, "")
        for name in FAMILIES
    ]
    return streams(_held(folder, {"ladders.eval.toml": "\n".join(parts)}))


def item_texts(folder: Path) -> dict[str, Any]:
    """Return the hashes of the questions that each family sets at two seeds."""
    parts = [
        f'[[eval]]\nname = "{name}-{seed}"\ntask = "{name}"\nmodel = "table:100"\n'
        f"queries = 1\nlevels = 4\nseed = {seed}\n{SMALL.get(name, '')}"
        for name in FAMILIES
        for seed in (0, 1)
    ]
    record = _held(folder, {"families.eval.toml": "\n".join(parts)})
    return {
        one["name"]: [f"{asked['item']} {asked['item_hash']}" for asked in one["administrations"]]
        for one in asked_items(record)
    }


# Studies, over models on a server on loopback

NETWORK = """
[[eval]]
kind = "network"
name = "{name}"
model = "{url}#pupil"
models = {{ judge = "{url}#judge" }}
seed = 4
[eval.network]
topology = "{topology}"
queries = 4
supervisor = {{ model = "judge", exchanges = 1 }}
[[eval.network.node]]
task = "addition"
size = "small"
name = "first"
levels = 2
[[eval.network.node]]
task = "counting"
size = "small"
name = "second"
levels = 3
{node}
[[eval.gate]]
at_least = 0.3
[[eval.gate]]
metric = "auc"
subject = "first"
at_least = 1.5
"""
PANEL = """
[[eval]]
kind = "peers"
name = "{name}"
model = "{url}#dog"
peers = ["{url}#ant", "{url}#bee", "{url}#cat", "{url}#elk"]
seed = 2
[eval.panel]
rounds = 4
topics = ["numbers", "words"]
difficulties = {{ hard = 0.6, easy = 0.4 }}
mode = "{mode}"
"""
OPINION = """
[[eval.gate]]
at_least = 3.5
[[eval.gate]]
metric = "rank"
rank_within = 2
"""
#: Of a study's account: what differs between two runs, what is worded, and who answered from where.
OF_RUNS = ("recalled", "usage", "models", "agents", "seconds", "prompts", "loads", "total", "calls")


def served() -> Any:
    """Return a server of models that set each other questions, answer them and judge the answers, by hashes."""
    from fake_server import SKILLS, PeerServer, said

    def reply(model: str, text: str) -> str:
        if model == "judge":
            return "no"
        if model == "pupil":  # adds small numbers, and counts wrongly
            numbers = [int(number) for number in re.findall(r"\d+", text.splitlines()[-1])]
            return str(sum(numbers)) if numbers and max(numbers) < 60 else "3"
        return said(model, text, SKILLS)

    return PeerServer({**SKILLS, "pupil": 0.0, "judge": 0.0}, reply)


def study_files(url: str) -> dict[str, str]:
    """Return evaluation files of two networks and two panels."""
    return {
        "network.eval.toml": NETWORK.format(name="line", url=url, topology="line", node=""),
        "tree.eval.toml": NETWORK.format(name="tree", url=url, topology="tree", node='after = "first"\nopens_at = 0.1'),
        "peers.eval.toml": PANEL.format(name="reliability", url=url, mode="reliability") + OPINION,
        "paper.eval.toml": PANEL.format(name="paper", url=url, mode="paper"),
    }


def studies(folder: Path) -> dict[str, Any]:
    """Return what two networks and two panels asked and found."""
    with served() as server:
        record = _held(folder, study_files(server.url))
        asked = dict(sorted(server.asked.items()))
    found: dict[str, Any] = {"calls": asked}
    for study in measured(record):
        found[study["name"]] = {
            "metrics": without_words(study["metrics"]),
            "asked": [study["asked"], study["size"], study["unit"]],
            "account": without_runs(study["account"]),
            "verdicts": [
                without_words(gate["verdict"]) for gate in record["gates"] if gate["interview"] == study["name"]
            ],
        }
    return found


def without_runs(value: Any) -> Any:
    """Return a part of a study's account without what `OF_RUNS` names."""
    if isinstance(value, dict):
        return {key: without_runs(one) for key, one in value.items() if key not in OF_RUNS}
    return [without_runs(one) for one in value] if isinstance(value, list) else value


# Calibration and backtests

_TWO = ["--model", "2pl"]  # numbers of one model, whichever is chosen by default
_FIT = ["--force", "--seed", "3", "--policy"]
FITS = {
    "2pl": ["matrix.csv", "--items", "items.jsonl", *_FIT, "estimate,decide", "--budget", "20%", *_TWO],
    "1pl": ["matrix.csv", *_FIT, "none", "--model", "1pl"],
    "mirt": ["matrix.csv", *_FIT, "none", "--model", "mirt", "--set", "dimensions=2"],
}
TORCH_FITS = {
    "svi": ["small.csv", *_FIT, "none", "--model", "1pl", "--set", "engine=svi", "--set", "limit=40"],
    "m3": ["formats.csv", *_FIT, "none", "--formats", "m3", "--budget", "20%", "--set", "limit=40"],
}
BACKTEST = ["matrix.csv", "--splits", "2", "--set", "test=4", "--jobs", "1", "--budget", "10%,25%", "--seed", "3"]
FORMAT_BACKTEST = ["formats.csv", "--splits", "1", "--jobs", "1", "--budget", "30%", "--seed", "3"]


def _fitted(folder: Path, fits: Mapping[str, list[str]], backtest: list[str]) -> dict[str, Any]:
    texts = {"matrix.csv": matrix(), "small.csv": matrix(12, 16), "formats.csv": format_responses(8, 8)}
    write(folder, {**texts, "items.jsonl": items(60)})
    runs = [(folder, "adaptive-eval", ["calibrate", *fit, "-o", f"{name}.bank"]) for name, fit in fits.items()]
    codes = run(folder, [*runs, (folder, "adaptive-eval", ["backtest", *backtest, "--json", "backtest.json"])])
    found: dict[str, Any] = {"codes": codes}
    assert codes[-1] == 0, printed(folder)
    found["backtest"] = without_times(json.loads((folder / "backtest.json").read_text()))
    return {**found, **{name: bank(folder / f"{name}.bank") for name in fits}}


def bank(folder: Path) -> dict[str, Any]:
    """Return the numbers of a calibrated bank."""
    import numpy as np

    found: dict[str, Any] = {"bank.json": without_times(json.loads((folder / "bank.json").read_text()))}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            found[path.name] = {
                name: [list(arrays[name].shape), _plain(arrays[name].ravel().tolist())] for name in sorted(arrays.files)
            }
    return found


def _plain(values: list[Any]) -> list[Any]:
    return [
        value.decode() if isinstance(value, bytes) else None if value != value else value  # NaN is no JSON
        for value in values
    ]


def without_times(value: Any) -> Any:
    """Return data without how long its making took, and without texts for people."""
    if isinstance(value, dict):
        dropped = ("seconds", "cost", "warnings", "reasons", "notes", "source", "text")
        return {key: without_times(one) for key, one in value.items() if key not in dropped}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def calibrations(folder: Path) -> dict[str, Any]:
    """Return banks of the engine ``map`` and a backtest of every policy."""
    return _fitted(folder, FITS, [*BACKTEST, *_TWO, "--policy", "all"])


def torch_calibrations(folder: Path) -> dict[str, Any]:
    """Return a bank of the engine ``svi``, one in formats, and a backtest in formats as of the M3-IRT paper."""
    found = _fitted(folder, TORCH_FITS, [*FORMAT_BACKTEST, *_TWO, "--policy", "random"])
    return {**found, "backtest": {**without_times(_backtest_in_formats(folder / "formats.csv")), "complete": True}}


def _backtest_in_formats(path: Path) -> dict[str, Any]:
    import numpy as np

    from pytest_adaptive_eval.banks.responses import read_format_responses
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.extensions.papers.format_backtests import format_backtest

    responses = read_format_responses([path])
    responses = replace(responses, families=grouped(responses.whole).families)
    low = np.zeros(len(responses.items), dtype=bool)
    names = ("m3+worth", "irt", "anchors")
    return format_backtest(responses, low, names, ["30%"], [0], repeats=1, seed=3).to_json()
