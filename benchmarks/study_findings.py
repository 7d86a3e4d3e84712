"""What climbs, networks and panels of known quality are told to be, a row for each finding.

``python -m benchmarks.study_findings [ROW ...]`` prints the rows, all by default; models are by code, or on loopback.
The same command in an earlier checkout prints what that one told: a row whose feature is not there tells the error.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np

from benchmarks.network_agents import CodedAgent, chance, writer
from benchmarks.study_actors import SKILLS, Pupil, network, panel, run
from pytest_adaptive_eval.extensions.studies.network.ablation_kind import CONFIDENCE, over_seeds
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.extensions.studies.peers.result import Assessment

#: Interviewers, a pal and a judge by code, on loopback with the pupil.
WRITERS = {"ann": writer(), "bob": writer(), "weak": writer(broken=0.7)}
HALVED = [[1.0] * n + [0.0] * (10 - n) for n in (10, 9, 6, 3)]


def said(model: str, text: str, limit: int = 100) -> str:
    """A pupil that adds most numbers below `limit`, a pal that errs, interviewers, and a judge of many faults."""
    if model in WRITERS:
        return WRITERS[model](text) if "of level" in text else "ok"
    if model == "judge":
        fault = chance(text) < 0.5
        return f"<rank>{2 if fault else 4}</rank>" if "<rank>" in text else ("yes" if fault else "no")
    numbers = [int(number) for number in re.findall(r"\d+", text.splitlines()[-1])]
    right = chance(model, text) < (0.4 if model == "pal" else 0.9)
    return str(sum(numbers)) if right and numbers and max(numbers) < limit else "987654321"


@contextlib.contextmanager
def loopback(reply: Callable[[str, str], str | None] = said) -> Iterator[str]:
    """URL of a server of these models."""
    from fake_server import PeerServer

    with PeerServer(dict.fromkeys(("pupil", "pal", "judge", *WRITERS), 0.0), reply) as server:
        yield server.url


def declared(url: str, settings: str, *models: str, kind: str = "network", options: str = "") -> str:
    """TOML of a study of networks with the pupil and these models."""
    others = ", ".join(f'{name} = "{url}#{name}"' for name in models)
    return (
        f'[[eval]]\nkind = "{kind}"\nname = "web"\nmodel = "{url}#pupil"\nmodels = {{ {others} }}\n{options}\n'
        f"[eval.network]\n{settings}\n"
    )


STAR = """
topology = "star"
queries = 6
supervisor = { model = "judge", scheme = "scale", labels = "labels.jsonl" }
[[eval.network.node]]
task = "addition"
levels = 2
interviewers = ["ann", "bob"]
[[eval.network.node]]
name = "debated"
task = "addition"
levels = 2
panel = ["pal"]
[[eval.gate]]
metric = "auc"
subject = "addition"
at_least = 1.0
"""


@functools.cache
def staged() -> dict[str, Any]:
    """The record of a star of two interviewers with a debate and a supervisor, from TOML."""
    with loopback() as url:
        toml = declared(url, STAR, "judge", "ann", "bob", "pal")
        before = run(toml.replace(', labels = "labels.jsonl"', ""))
        nodes = before["interviews"][0]["account"]["nodes"]
        reviews = [(node["name"], r) for node in nodes for r in node["reviews"] if r["subject"] == "exchange"]
        labels = [
            {"node": node, "item": r["item"], "rating": r["rating"] if k % 4 else 6 - r["rating"]}
            for k, (node, r) in enumerate(reviews)
        ]
        return run(toml, files={"labels.jsonl": "".join(json.dumps(label) + "\n" for label in labels)})


def last_level_of_a_climb() -> str:
    """Levels of accuracy 1, .9, .6 and .3 with stop_at = 0.5."""
    from pytest_adaptive_eval.ladder.policy import Climb
    from pytest_adaptive_eval.ladder.result import Ladder
    from pytest_adaptive_eval.records.parts import converted
    from pytest_adaptive_eval.records.repetitions import ladder_of
    from pytest_adaptive_eval.records.run_record import EvaluationRecord

    levels = {"cap": 4, "accuracy": [1.0, 0.9, 0.6, 0.3]}
    settings = {"queries": 10, "stop_at": 0.5, "settle": False}
    record = converted(EvaluationRecord, {
        "name": "x", "nodeid": "x", "subject": {"name": "x"}, "bank": {}, "policy": {"settings": settings},
        "asked": 40, "scored": 40, "size": 40, "statuses": {"ok": 40}, "stop": "LEVEL", "stop_sentence": "",
        "levels": levels, "theta": None,
        "standard_error": None, "accuracy": None, "accuracy_model": None,
    })  # fmt: skip
    ladder = Ladder(tuple(map(np.array, HALVED)), 4)
    return f"history {ladder_of(record)}, gate {Climb(10, 0.5).last(ladder, 0.95).estimate:.0f}"


def last_level_of_a_node() -> str:
    """The same levels in a node of a network."""
    scores = tuple(map(np.array, HALVED))
    node = NodeResult(
        "n", "addition", "", "n", "task", 4, 10, 0.5, 1.0, 0.0, (), "", "code", opened=True, scores=scores,
        rounds=((1, 4),),
    )  # fmt: skip
    last = node.last()
    assert last is not None
    return f"page {node.to_json()['last']}, gate {last.estimate:.0f}"


def guesser() -> str:
    """A model that always says 2, in `counting` of 40 levels with 20 questions each, ten seeds."""
    asked, floors = [], []
    for seed in range(10):
        data = {"seed": seed, "node": [{"task": "counting", "levels": 40, "queries": 20}]}
        node = network(data, pupil=Pupil("pupil", "2")).nodes[0]
        asked.append(node.counts["answers"])
        floors.append((node.area, node.to_json().get("guess_area")))
    longest = int(np.argmax(asked))
    area, floor = floors[longest]
    told = "no guess floor told" if floor is None else f"{floor:.2f} of it by guessing"
    return (
        f"{np.mean(asked):.0f} questions on average, at most {max(asked)} of 800; there an area of {area:.2f}, {told}"
    )


def guess_floors() -> str:
    """Reports of a ladder and of a network of `counting`, that tell what guessing alone has."""
    with loopback(lambda *_: "2") as url:
        ladder = f'[[eval]]\nname = "climb"\ntask = "counting"\nlevels = 6\nqueries = 10\nmodel = "{url}#pupil"\n'
        web = declared(url, '[[eval.network.node]]\ntask = "counting"\nlevels = 6\n').replace("models = {  }\n", "")
        found = {name: run(toml)["reports"] for name, toml in {"ladder": ladder, "network": web}.items()}
    return "; ".join(
        f"{name}: {', '.join(report for report, text in reports.items() if 'guessing' in text) or 'none'}"
        for name, reports in found.items()
    )


def truncated() -> str:
    """A network with max_tokens = 16, whose answers at level 2 are all cut."""
    from fake_server import JsonServer, completion

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        text = body["messages"][-1]["content"]
        reply = completion("pupil", said("pupil", text))
        numbers = re.findall(r"\d+", text.splitlines()[-1])
        if numbers and len(max(numbers, key=len)) > 1:
            reply["choices"][0]["finish_reason"] = "length"
        return reply, 200

    with JsonServer(["pupil"], answer) as server:
        settings = '[[eval.network.node]]\ntask = "addition"\nlevels = 3\n[[eval.gate]]\nat_least = 0.1\n'
        toml = declared(server.url, settings, options="model_options = { max_tokens = 16 }")
        record = run(toml.replace("models = {  }\n", ""))
    sentence = record["verdicts"][0]
    return str(sentence).partition("; ")[0][:60] + " ...; " + "; ".join(record["interviews"][0]["notes"])


def not_sure() -> str:
    """A climb of `counting` by a model that says "I am not sure"."""
    conftest = """
import pytest
class Model:
    def generate(self, prompt):
        return "I am not sure"
@pytest.fixture(scope="module")
def model():
    return Model()
"""
    test = """
import pytest
@pytest.mark.adaptive_eval(task="counting", queries=10, stop_at=0.0)
def test_it(item, model):
    assert item.grade(model.generate(item.prompt))
"""
    (interview,) = run("", files={"conftest.py": conftest, "test_it.py": test})["interviews"]
    return f"{interview['stop']}: {interview['error'][:70] or interview['levels']['accuracy']}"


def verbs(kind: str, metric: str, start: float, subject: str = "") -> str:
    """`compare`, `drift` and `correlate` over 14 runs of a study, whose quantity falls at the end."""
    from pytest_adaptive_eval.cli import main
    from pytest_adaptive_eval.records.parts import converted
    from pytest_adaptive_eval.records.run_files import write_run
    from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord

    told = []
    with tempfile.TemporaryDirectory() as folder:
        for day in range(1, 15):
            name = f"s{day}"
            value = start + day / 1000 if day < 13 else start / 2
            row = {"subject": subject or name, "estimate": value, "error": 0.02, "low": value - 0.033}
            row |= {"high": value + 0.033, "confidence": 0.95, "method": "by levels and routes"}
            record = RunRecord(f"203105{day:02d}T0Z-{day}", f"2031-05-{day:02d}T00:00:00+00:00", exit_status=0)
            metrics = {metric: [row]}
            record.evaluations = [
                converted(
                    EvaluationRecord,
                    {
                        "name": "web",
                        "nodeid": "t::web",
                        "kind": kind,
                        "subject": {"name": name},
                        "members": [{"name": name}],
                        "metrics": metrics,
                        "asked": 1,
                        "size": 1,
                        "unit": "nodes",
                    },
                )
            ]
            write_run(Path(folder), record)
        reference = Path(folder, "scores.csv")
        reference.write_text("subject,mmlu\n" + "".join(f"s{day},{day}\n" for day in range(1, 15)))
        ids = sorted(path.stem for path in Path(folder, "runs").glob("*.json"))
        for arguments in (["--compare", ids[0], ids[-1]], ["--drift"], ["--correlate", str(reference)]):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                main(["history", *arguments, "--from", folder])
            lines = [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]
            told.append(f"{arguments[0][2:]}: {lines[-1].replace(folder, 'FOLDER')[:100]}")
    return "; ".join(told)


def verbs_on_energy() -> str:
    """Of the energy of a network."""
    return verbs("network", "energy", 0.6)


def verbs_on_an_area() -> str:
    """Of the area of a network's node."""
    return verbs("network", "auc", 3.0, "addition")


def verbs_on_a_score() -> str:
    """Of the score of a panel's candidate."""
    return verbs("peers", "score", 4.0)


def network_against_its_baseline() -> str:
    """`not_worse_than = "baseline"` on the energy of a network, whose candidate adds smaller numbers than before."""
    settings = '[[eval.network.node]]\ntask = "addition"\nlevels = 3\n'
    gate = '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.05\n'
    found: list[dict[str, Any]] = []
    for text, limit in ((settings, 1000), (settings + gate, 10)):
        with loopback(functools.partial(said, limit=limit)) as url:
            flags = ["--adaptive-eval-baseline=base.json"] if found else []
            files = {"base.json": json.dumps({**found[0], "reports": ""})} if found else {}
            found.append(run(declared(url, text).replace("models = {  }\n", ""), *flags, files=files))
    return str(found[-1]["verdicts"][0])


def panel_against_a_baseline() -> str:
    """`not_worse_than` on the score of a panel, whose candidate lost a point."""
    from pytest_adaptive_eval.gates.quantities import Measured
    from pytest_adaptive_eval.gates.result import Result

    def result(score: float, **more: Any) -> Result:
        measured = Measured([score, 3.0, 3.5], np.eye(3) * 0.01)
        return Result("council", "peers", "a", ("a", "b", "c"), ("score",), {"score": measured}, 9, 9, **more)

    return str(result(3.0, baselines={"main": result(4.0)}).score.not_worse_than("main", margin=0.2).sentence)


def read_back() -> str:
    """`Assessment` from its own JSON."""
    result, _ = panel()
    data = json.loads(json.dumps(result.to_json()))
    again = Assessment.from_json(data)
    return f"read back, scores equal: {bool((again.scores == result.scores).all())}"


def mean_opinion() -> str:
    """The mean opinion of a star of two interviewers, and the gate on it."""
    record = staged()
    (study,) = record["interviews"]
    opinion = study["account"]["opinions"]["addition"]
    shown = "Mean opinions" in record["reports"]["page"]
    return f"{opinion['estimate']:.2f}, on the page: {shown}; {record['verdicts'][0].partition(', 95')[0]}"


def supervisor() -> str:
    """A supervisor's ratings, refusals, and agreement with labels of a file."""
    record = staged()
    account = record["interviews"][0]["account"]
    agreement = account["agreement"]
    numbers = ", ".join(f"{name} {agreement[name]:.2f}" for name in ("spearman",) if agreement[name] is not None)
    on_page = [part for part in ("mean rating", "Agreement with labels") if part in record["reports"]["page"]]
    reviews = {
        name: {key: counts[key] for key in ("reviews", "refused")} for name, counts in account["reviews"].items()
    }
    return f"{reviews}, labels: {numbers}, rated {agreement['rated']}; on the page: {', '.join(on_page)}"


def debate() -> str:
    """What a debate corrected and spoiled, on the page of a star with discussion."""
    record = staged()
    node = next(node for node in record["interviews"][0]["account"]["nodes"] if node["name"] == "debated")
    members = "; ".join(
        f"{m['name']} {' '.join(f'{a:.2f}' for a in m['accuracies'])}, mended {m['mended']}, spoiled {m['spoiled']}"
        for m in node["panel"]
    )
    on_page = [part for part in ("Panels", "corrected", "spoiled") if part in record["reports"]["page"]]
    return f"{members}; on the page: {', '.join(on_page)}"


def messages() -> str:
    """Errors of an interviewer: .8 of its attempts, and .16 where it reads what was examined before."""
    data = {"interviewer": "ann", "node": [{"task": "addition", "levels": 3}, {"task": "operations", "levels": 3}]}
    result = network(data, CodedAgent("ann", writer(broken=0.8, attentive=0.2)))
    (row,) = result.to_json()["interviewers"]
    return ", ".join(
        f"{kind} messages {row[kind]['rate']:.2f} of {row[kind]['attempts']}" for kind in ("without", "with")
    )


def refusing() -> str:
    """A supervisor that answers yes to everything."""
    from pytest_adaptive_eval.extensions.studies.network import kind as config

    data = {"interviewer": "ann", "supervisor": "sol", "retries": 0, "node": [{"task": "addition", "levels": 2}]}
    result = network(data, CodedAgent("ann", writer()), CodedAgent("sol", "yes"))
    return "; ".join(note for note in config.warnings_on_agents(result) if "supervisor" in note) or "it is not named"


def seen() -> str:
    """What an interviewer reads of the answers to its own questions."""
    ann = CodedAgent("ann", writer())
    network({"interviewer": "ann", "node": [{"task": "addition", "levels": 2, "queries": 3}]}, ann)
    lines = [line for line in ann.asked[-1].splitlines() if "(score " in line]
    return f"{len(lines)} answers with scores" + (f", such as {lines[0]!r}" if lines else "")


def paper() -> str:
    """Sampling and weights of a panel on loopback in mode `paper`, one of whose judges always says 4."""
    from fake_server import PeerServer, said

    def reply(model: str, text: str) -> str:
        return "<rank>4</rank>" if model == "bee" and text.startswith("You are an") else said(model, text, SKILLS)

    with PeerServer(SKILLS, reply) as server:
        peers = ", ".join(f'"{server.url}#{name}"' for name in SKILLS if name != "ant")
        toml = (
            f'[[eval]]\nkind = "peers"\nmodel = "{server.url}#ant"\npeers = [{peers}]\n[eval.panel]\nmode = "paper"\n'
        )
        record = run(toml + 'rounds = 8\ntopics = ["maths", "logic", "law", "art", "music", "sport"]\n')
    (study,) = record["interviews"]
    decoding = study["members"][0]["decoding"]
    top_p = (decoding.get("extra") or {}).get("top_p")
    weight = study["account"]["paper"]["weights"][[m["name"] for m in study["members"]].index("bee")]
    table = record["reports"]["page"].partition("more to itself")[2].partition("</table>")[0]
    cells = re.findall(r"<t[dh][^>]*>(?:<[^>]*>)*([^<]*)", table)
    shown = cells[cells.index("bee") + 1] if "bee" in cells else "-"
    topics = next((note for note in study["notes"] if "topic" in note), "nothing said of topics")
    return (
        f"temperature {decoding['temperature']}, top_p {top_p}; weight of bee {weight:.3f}, on the page {shown}; "
        f"on the page tasks: {'mean vote' in record['reports']['page']}, answers: "
        f"{'mean judgment by others' in record['reports']['page']}; {topics}"
    )


def paper_checkpoints() -> str:
    """Sampling of local checkpoints in mode `paper`."""
    folders = [str(ROOT / "fixtures" / "checkpoints" / "interviewer")] * 3
    peers = ", ".join(f'{{ name = "p{n}", model = "{folder}" }}' for n, folder in enumerate(folders[1:]))
    toml = f'[[eval]]\nkind = "peers"\nmodel = "{folders[0]}"\npeers = [{peers}]\n[eval.panel]\nmode = "paper"\n'
    record = run(toml + "rounds = 1\nretries = 1\ntask_tokens = 16\n")
    decodings = [member["decoding"] for member in record["interviews"][0]["members"]]
    return "; ".join(f"temperature {d.get('temperature')}, top_p {d.get('top_p')}" for d in decodings[:1])


def topics() -> str:
    """Forty rounds over 20 topics in 20 runs, and whether the missed topics are told."""
    told, missed = 0, 0
    for seed in range(20):
        result, _ = panel(rounds=40, topics=[f"topic {n}" for n in range(20)], seed=seed)
        drawn = {attempt.topic for cycle in result.rounds for attempt in cycle.attempts}
        missed += len(drawn) < 20
        from pytest_adaptive_eval.extensions.studies.peers import kind as config

        told += any("not drawn" in note for note in config._notes(result))
    return f"topics were missed in {missed} of 20 runs, and told in {told}"


def single_judge() -> str:
    """Members that were asked to judge where cat is the only judge."""
    _, members = panel(mode="paper", judge="cat")
    asked = {member.name: sum(text.startswith("You are an") for text in member.asked) for member in members}
    return ", ".join(f"{name} {count}" for name, count in asked.items())


def mirror() -> str:
    """Flags of a judge planted as 6 - s, in twelve panels each of 8, 12 and 40 rounds."""
    found = []
    for rounds in (8, 12, 40):
        flags = Counter[str]()
        for seed in range(12):
            fit = panel("bee", rounds=rounds, seed=seed)[0].reliability
            assert fit is not None
            flags[" and ".join(fit.flags.words(1)) or "none"] += 1
        found.append(f"{rounds} rounds: {', '.join(f'{name} {n}' for name, n in flags.most_common())}")
    return "; ".join(found)


LINE = """
queries = 4
interviewer = "ann"
[[eval.network.node]]
task = "addition"
levels = 3
[[eval.network.node]]
name = "second"
task = "addition"
levels = 3
"""
#: MACEval's ablations: the variant, and what it is compared in.
VARIANTS = {
    "interviewer": ('network = { interviewer = "weak" }', "error_rate of addition"),
    "roles": ('interviewee = "pal"', "energy"),
    "queries": ("network = { queries = 12 }", "area of addition"),
    "errors injected": ("network = { injected = 200 }", "error_rate of second"),
    "static": ('network = { interviewer = "", node = [{ name = "addition", bank = "b.jsonl" }] }', "area of addition"),
}


def ablations() -> str:
    """MACEval's ablations as comparisons from TOML, over five seeds each."""
    variants = "".join(f'[eval.variant."{name}"]\n{change}\n' for name, (change, _) in VARIANTS.items())
    items = [
        {"id": f"{n}-{k}", "prompt": f"{n} + {k}", "answer": f"{n + k}", "grader": "numeric", "meta": {"level": n}}
        for n in (1, 2, 3)
        for k in range(4)
    ]
    with loopback() as url:
        toml = declared(url, LINE, "ann", "weak", "pal", kind="ablation", options="seeds = 5") + variants
        record = run(toml, files={"b.jsonl": "".join(json.dumps(item) + "\n" for item in items)})
    (study,) = record["interviews"]
    values = study["account"]["values"]
    told = []
    for name, (_, quantity) in VARIANTS.items():
        before, after = values["as written"][quantity], values[name][quantity]
        change = over_seeds(np.subtract(after, before).tolist(), CONFIDENCE)
        told.append(f"{name}: {quantity} {np.mean(before):.2f} -> {np.mean(after):.2f} {change.bounds_in_words(2)}")
    return "; ".join(told)


FINDINGS: tuple[Callable[[], str], ...] = (
    last_level_of_a_climb, last_level_of_a_node, guesser, guess_floors, not_sure, truncated, verbs_on_energy,
    verbs_on_an_area, verbs_on_a_score, network_against_its_baseline, panel_against_a_baseline, read_back,
    mean_opinion, messages, supervisor, refusing, seen, debate, paper, paper_checkpoints, topics,
    single_judge, mirror, ablations,
)  # fmt: skip


def main() -> None:
    """Print a row for each finding."""
    names = {finding.__name__: finding for finding in FINDINGS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("row", nargs="*", metavar="ROW", help=f"one of {', '.join(names)}")
    for name in parser.parse_args().row or names:
        try:
            told = names[name]()
        except Exception as error:  # an earlier checkout lacks it
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:140]}"
        print(f"{name}: {told}", flush=True)


if __name__ == "__main__":
    main()
