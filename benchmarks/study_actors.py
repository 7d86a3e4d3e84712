"""Actors of known quality for `benchmarks.study_findings`: pupils, panels, servers on loopback, and runs of pytest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

from benchmarks.network_agents import CodedAgent, chance
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.extensions.studies.peers.assessment import assess
from pytest_adaptive_eval.extensions.studies.peers.result import Assessment
from pytest_adaptive_eval.extensions.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.pool import ModelPool

#: The command `adaptive-eval` of this checkout.
CLI = "import sys; from pytest_adaptive_eval.cli import main; raise SystemExit(main(sys.argv[1:]))"
SKILLS = {"ant": 3.0, "bee": 3.4, "cat": 3.8, "dog": 4.2, "elk": 4.6}


class Pupil(Model):
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
    pool = ModelPool({model.identity.name: partial(_given, model) for model in models})
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
    """The record of one run of pytest, with its reports by name as ``reports``, and its verdicts as ``verdicts``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, text in {"adaptive-eval.toml": toml, "pytest.ini": "[pytest]\n", **(files or {})}.items():
            if text:
                (path / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--adaptive-eval"]
        options = ["--adaptive-eval-record=record.json", "--adaptive-eval-html=page.html", *flags]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*command, *options], cwd=path, env=environment, capture_output=True, text=True)
        if not (path / "record.json").exists():
            raise RuntimeError(" ".join((done.stderr + done.stdout).split())[:200])
        reports = {"terminal": done.stdout, "page": (path / "page.html").read_text()}
        files_of = [f"--{name}={name}.txt" for name in ("markdown", "junit")]
        for name, arguments in {"history": ["history"], "report": ["report", "latest", *files_of]}.items():
            command = [sys.executable, "-c", CLI, *arguments]
            reports[name] = subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True).stdout
        reports |= {name: (path / f"{name}.txt").read_text() for name in ("markdown", "junit")}
        record = dict(json.loads((path / "record.json").read_text()))
        return {**record, "reports": reports, "verdicts": [gate["verdict"]["sentence"] for gate in record["gates"]]}
