"""What climbs, networks and panels of known quality are told to be, a row for each finding.

``python -m benchmarks.study_findings`` prints the rows; models are by code, or on loopback.  The same command in an
earlier checkout prints what it told: a row whose feature is not there tells the error.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "plugin")]

import numpy as np

from benchmarks.network_agents import CodedAgent, chance, writer
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.studies.network.declare import read_network
from pytest_adaptive_eval.studies.network.node_result import NodeResult
from pytest_adaptive_eval.studies.network.result import NetworkResult
from pytest_adaptive_eval.studies.network.run import hold_network
from pytest_adaptive_eval.studies.peers.assessment import assess
from pytest_adaptive_eval.studies.peers.result import Assessment
from pytest_adaptive_eval.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.subjects.base import Completion, Subject, SubjectIdentity
from pytest_adaptive_eval.subjects.pool import AgentPool

HALVED = [[1.0] * n + [0.0] * (10 - n) for n in (10, 9, 6, 3)]
SKILLS = {"ant": 3.0, "bee": 3.4, "cat": 3.8, "dog": 4.2, "elk": 4.6}


class Pupil(Subject):
    """Right at level 1, and at level 2 in half of the cases; or always the same answer."""

    def __init__(self, name: str, always: str = "") -> None:
        super().__init__(SubjectIdentity(name, name))
        self.always = always

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """The item's answer, or a wrong one."""
        return [Completion(self.always or self._one(item)) for item in items]

    def _one(self, item: Item) -> str:
        level = int(item.meta["level"])
        return item.answer if level == 1 or (level == 2 and chance(item.prompt) < 0.5) else "987654321"


def _given(model: Any) -> Any:
    return model


def network(data: dict[str, Any], *agents: CodedAgent, pupil: Pupil | None = None) -> NetworkResult:
    """A network of a pupil, with a pal."""
    models: list[Any] = [pupil or Pupil("pupil"), Pupil("pal", "3"), *agents]
    pool = AgentPool({model.identity.name: partial(_given, model) for model in models})
    return hold_network(read_network(data, "pupil"), pool)


def peer(name: str, *, mirrored: bool = False) -> CodedAgent:
    """A member of a panel that judges by skill with noise, or by 6 - s."""

    def said(text: str) -> str:
        noise = sum(hashlib.sha256(f"{name} {text}".encode()).digest()[:12]) / 12 / 255 - 0.5
        if text.startswith("Write one"):
            return f"Why is {chance(name, text)} so?"
        if text.startswith("Answer the"):
            return f"skill {SKILLS[name]}"
        judging = text.startswith("You are an")
        skill = float(re.findall(r"skill ([\d.]+)", text)[-1]) if judging else 4.0
        rank = min(max(round(skill + 5 * noise), 1), 5)
        return f"<rank>{6 - rank if mirrored and judging else rank}</rank>"

    return CodedAgent(name, said)


def panel(mirror: str = "", **settings: Any) -> tuple[Assessment, list[CodedAgent]]:
    """An assessment of five members."""
    members = [peer(name, mirrored=name == mirror) for name in SKILLS]
    topics = [f"topic {n}" for n in range(60)]
    return assess(members, PeerSettings(**{"rounds": 12, "topics": topics, **settings})), members


def run(toml: str, *flags: str, files: dict[str, str] | None = None) -> dict[str, Any]:
    """The record of one run of pytest, with the page as ``page``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, text in {"adaptive-eval.toml": toml, "pytest.ini": "[pytest]\n", **(files or {})}.items():
            if text:
                (path / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval"]
        options = ["--adaptive-eval-record=record.json", "--adaptive-eval-html=page.html", *flags]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*command, *options], cwd=path, env=environment, capture_output=True, text=True)
        if not (path / "record.json").exists():
            raise RuntimeError(" ".join((done.stderr + done.stdout).split())[:200])
        record = dict(json.loads((path / "record.json").read_text()))
        return {**record, "page": (path / "page.html").read_text()}


def last_level_of_a_climb() -> str:
    """Levels of accuracy 1, .9, .6 and .3 with stop_at = 0.5."""
    from pytest_adaptive_eval.ladder.policy import Climb
    from pytest_adaptive_eval.ladder.result import Ladder
    from pytest_adaptive_eval.records.repetitions import ladder_of
    from pytest_adaptive_eval.records.run_record import InterviewRecord

    levels = {"cap": 4, "accuracy": [1.0, 0.9, 0.6, 0.3]}
    settings = {"queries": 10, "stop_at": 0.5, "settle": False}
    record = InterviewRecord(
        name="x", nodeid="x", subject={}, bank={}, policy={"settings": settings}, asked=40, scored=40, size=40,
        statuses={"ok": 40}, stop="LEVEL", stop_sentence="", levels=levels, theta=None,
        standard_error=None, accuracy=None, accuracy_model=None,
    )  # fmt: skip
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


def verbs() -> str:
    """`compare`, `drift` and `correlate` over twelve runs of a network whose energy falls."""
    from pytest_adaptive_eval.cli import main
    from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
    from pytest_adaptive_eval.records.runs import write_run

    told = []
    with tempfile.TemporaryDirectory() as folder:
        for day in range(1, 15):
            energy = 0.6 + day / 1000 if day < 13 else 0.3
            row = {
                "subject": f"s{day}",
                "estimate": energy,
                "error": 0.02,
                "low": energy - 0.033,
                "high": energy + 0.033,
            }
            row |= {"confidence": 0.95, "method": "by levels and routes"}
            record = RunRecord(f"203105{day:02d}T0Z-{day}", f"2031-05-{day:02d}T00:00:00+00:00", exit_status=0)
            members = [{"name": f"s{day}"}]
            record.studies = [
                StudyRecord("web", "t::web", "network", f"s{day}", members, {"energy": [row]}, 1, 1, "nodes")
            ]
            write_run(Path(folder), record)
        reference = Path(folder, "scores.csv")
        reference.write_text("subject,mmlu\n" + "".join(f"s{day},{day}\n" for day in range(1, 15)))
        ids = sorted(path.stem for path in Path(folder, "runs").glob("*.json"))
        for arguments in (["compare", ids[0], ids[-1]], ["drift"], ["correlate", "--reference", str(reference)]):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                main([*arguments, "--from", folder])
            lines = [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]
            told.append(f"{arguments[0]}: {lines[-1].replace(folder, 'FOLDER')[:110]}")
    return "; ".join(told)


def against() -> str:
    """`not_worse_than` on the score of a panel, whose candidate lost a point."""
    from pytest_adaptive_eval.gates.study_result import Measured, StudyResult

    def result(score: float, **more: Any) -> StudyResult:
        measured = Measured([score, 3.0, 3.5], np.eye(3) * 0.01)
        return StudyResult("council", "peers", "a", ("a", "b", "c"), ("score",), {"score": measured}, 9, 9, **more)

    return str(result(3.0, baselines={"main": result(4.0)}).score.not_worse_than("main", margin=0.2).sentence)


def read_back() -> str:
    """`Assessment` from its own JSON."""
    result, _ = panel()
    data = json.loads(json.dumps(result.to_json()))
    again = Assessment.from_json(data)
    return f"read back, scores equal: {bool((again.scores == result.scores).all())}"


def star() -> str:
    """The mean opinion of a star of two interviewers of one task."""
    data = {"topology": "star", "node": [{"task": "addition", "levels": 3, "interviewers": ["ann", "bob"]}]}
    result = network(data, CodedAgent("ann", writer()), CodedAgent("bob", writer()))
    return f"opinions {json.dumps(result.to_json()['opinions'])[:110]}"


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
    from pytest_adaptive_eval.config import network as config

    data = {"interviewer": "ann", "supervisor": "sol", "retries": 0, "node": [{"task": "addition", "levels": 2}]}
    result = network(data, CodedAgent("ann", writer()), CodedAgent("sol", "yes"))
    return "; ".join(note for note in config._notes(result) if "supervisor" in note) or "it is not named"


def seen() -> str:
    """What an interviewer reads of the answers to its own questions."""
    ann = CodedAgent("ann", writer())
    network({"interviewer": "ann", "node": [{"task": "addition", "levels": 2, "queries": 3}]}, ann)
    lines = [line for line in ann.asked[-1].splitlines() if "(score " in line]
    return f"{len(lines)} answers with scores" + (f", such as {lines[0]!r}" if lines else "")


def debate() -> str:
    """A star whose node has a panel."""
    node = {"task": "addition", "levels": 2, "panel": ["pal"]}
    result = network({"topology": "star", "node": [node]})
    return ", ".join(f"{m.name} {m.accuracies}" for m in result.nodes[0].panel)


def paper() -> str:
    """Sampling and weights of a panel on loopback in mode `paper`, one of whose judges always says 4."""
    from peer_server import PeerServer, said

    def reply(model: str, text: str) -> str:
        return "<rank>4</rank>" if model == "bee" and text.startswith("You are an") else said(model, text, SKILLS)

    with PeerServer(SKILLS, reply) as server:
        peers = ", ".join(f'"{server.url}#{name}"' for name in SKILLS if name != "ant")
        toml = (
            f'[[eval]]\nkind = "peers"\nmodel = "{server.url}#ant"\npeers = [{peers}]\n[eval.panel]\nmode = "paper"\n'
        )
        record = run(toml + 'rounds = 8\ntopics = ["maths", "logic", "law", "art", "music", "sport"]\n')
    (study,) = record["studies"]
    decoding = study["members"][0]["decoding"]
    top_p = (decoding.get("extra") or {}).get("top_p")
    weight = study["account"]["paper"]["weights"][[m["name"] for m in study["members"]].index("bee")]
    table = record["page"].partition("more to itself")[2].partition("</table>")[0]
    cells = re.findall(r"<t[dh][^>]*>(?:<[^>]*>)*([^<]*)", table)
    shown = cells[cells.index("bee") + 1] if "bee" in cells else "-"
    topics = next((note for note in study["notes"] if "topic" in note), "nothing said of topics")
    return (
        f"temperature {decoding['temperature']}, top_p {top_p}; weight of bee {weight:.3f}, on the page {shown}; "
        f"tasks on the page: {'mean vote' in record['page']}; {topics}"
    )


def single_judge() -> str:
    """Members that were asked to judge where cat is the only judge."""
    _, members = panel(mode="paper", judge="cat")
    asked = {member.name: sum(text.startswith("You are an") for text in member.asked) for member in members}
    return ", ".join(f"{name} {count}" for name, count in asked.items())


def mirror() -> str:
    """Flags of a judge planted as 6 - s, of 8, 12 and 40 rounds."""
    found = []
    for rounds in (8, 12, 40):
        fit = panel("bee", rounds=rounds)[0].reliability
        assert fit is not None
        found.append(f"{rounds} rounds: {' and '.join(fit.flags.words(1)) or 'none'}")
    return "; ".join(found)


def ablation() -> str:
    """A declared swap of the interviewer for one of whose attempts 70 % break the format."""
    from peer_server import PeerServer

    writers = {"ann": writer(), "weak": writer(broken=0.7)}

    def reply(model: str, text: str) -> str:
        if model in writers:
            return writers[model](text) if "of level" in text else "ok"
        return str(sum(map(int, re.findall(r"\d+", text.splitlines()[-1]))))

    with PeerServer(dict.fromkeys(("pupil", *writers), 0.0), reply) as server:
        models = ", ".join(f'{name} = "{server.url}#{name}"' for name in writers)
        toml = (
            f'[[eval]]\nkind = "ablation"\nname = "swap"\nmodel = "{server.url}#pupil"\nmodels = {{ {models} }}\n'
            "seeds = 3\n"
            '[eval.network]\nqueries = 4\ninterviewer = "ann"\n[[eval.network.node]]\ntask = "addition"\nlevels = 3\n'
            '[[eval.variant]]\nname = "weak"\nnetwork = { interviewer = "weak" }\n'
        )
        (study,) = run(toml)["studies"]
    rows = study["account"]["contrasts"]
    return "; ".join(
        f"{row['quantity']} {row['before']:.2f} -> {row['after']:.2f} "
        f"[{row['change']['low']:.2f}, {row['change']['high']:.2f}]"
        for row in rows
    )


FINDINGS: tuple[Callable[[], str], ...] = (
    last_level_of_a_climb, last_level_of_a_node, guesser, not_sure, verbs, against, read_back, star, messages, refusing,
    seen, debate, paper, single_judge, mirror, ablation,
)  # fmt: skip


def main() -> None:
    """Print a row for each finding."""
    for finding in FINDINGS:
        try:
            told = finding()
        except Exception as error:  # an earlier checkout lacks it
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:140]}"
        print(f"{finding.__name__.replace('_', ' ')}: {told}", flush=True)


if __name__ == "__main__":
    main()
