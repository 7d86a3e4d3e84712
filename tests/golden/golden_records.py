"""Records of schema 1, a bank folder and killed runs: how they are made, and what is read from them."""

from __future__ import annotations

import csv
import errno
import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import golden_project
import golden_streams
from golden_project import STORED, items, records, run, write

RECORDS = STORED / "records"
#: Of the server: a part of the keys of replies, so that it must be the same wherever a journal is resumed.
ADDRESS = ("127.73.11.5", 48123)
#: Seconds to wait for the address, which another run of these tests may hold.
PATIENCE = 60
RUNS = {name: f"2031050{day}T070809000Z-0000000{day}" for day, name in enumerate(("first", "second", "studies"), 1)}

TOY = """
[[eval]]
name = "toy"
bank = "toy.bank"
budget = 16
batch = 4
stop = "budget"
[[eval.gate]]
at_least = 0.5
[[eval.gate]]
metric = "ability"
at_least = -1.0
[[eval]]
name = "plain"
bank = "plain.jsonl"
budget = 12
batch = 4
[[eval.gate]]
at_least = 0.3
"""
CLIMB = """
[[eval]]
name = "climb"
task = "counting"
size = "small"
queries = 4
levels = 3
[[eval.gate]]
metric = "auc"
at_least = 0.5
"""
FORMS = """
[[eval]]
name = "forms"
bank = "forms.jsonl"
formats = "all"
budget = 12
[[eval.gate]]
metric = "gain"
at_least = 0.1
"""
PYTHON = """
import pytest


def shout(prompt):
    return prompt.upper()


@pytest.mark.adaptive_eval(bank="plain.jsonl", budget=10, batch=2, name="python", stop="budget")
def test_python(item, model):
    assert item.grade(model.generate(item))


@pytest.mark.adaptive_gate("python", at_least=0.3)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
#: A grey picture of one pixel.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c6368000000820081dd436af40000000049454e44ae426082"
)


def project(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a project with the stored bank, a plain bank and one in formats."""
    forms = items(12, images=["dot.png"], formats=["image+text", "image", "text", "none"])
    write(folder, {"plain.jsonl": items(30), "forms.jsonl": forms, **files})
    (folder / "dot.png").write_bytes(PICTURE)
    shutil.copytree(STORED / "toy.bank", folder / "toy.bank")
    return folder


def make_bank() -> dict[str, Any]:
    """Write the stored bank again, and return its hashes."""
    from pytest_adaptive_eval import Item, write_bank

    chances = golden_project.chances(1, 40, 3)[0]
    asked = [
        Item(f"q{n}", f"question {n}", "yes", category=("even" if n % 2 == 0 else "odd",)) for n in range(len(chances))
    ]
    write_bank(
        STORED / "toy.bank",
        asked,
        discrimination=[[0.6 + chance] for chance in chances],
        intercept=[4 * chance - 2 for chance in chances],
        replace=True,
    )
    return bank_hashes()


def bank_hashes() -> dict[str, Any]:
    """Return the hashes of the stored bank, of the fixtures' and of plain ones."""
    from pytest_adaptive_eval import read_bank

    banks = [STORED / "toy.bank", *sorted((golden_project.FIXTURES / "banks").glob("*.bank"))]
    banks += sorted((golden_project.FIXTURES / "banks").glob("*.jsonl"))
    return {
        path.name: [bank.content_hash, bank.scale, [item.content_hash for item in list(bank.items)[:5]]]
        for path in banks
        for bank in [read_bank(path)]
    }


class _Killed:
    """The process of a run, which a server may kill."""

    process: subprocess.Popen[str] | None = None


@contextmanager
def server(address: tuple[str, int] = ADDRESS, kill_at: str = "") -> Iterator[Any]:
    """Serve the models of studies at a fixed address; kill the run at the second request that begins so.

    What came before in the study is then in its journal: the steps of a study wait for each other.
    """
    from fake_server import PeerServer

    made = golden_streams.served()
    reply, lock = made.reply, threading.Lock()
    rounds: set[str] = set()
    killed: list[str] = []

    def counting(model: str, text: str) -> str | None:
        with lock:
            if text.startswith("Answer the"):
                rounds.add(text)
            if kill_at and text.startswith(kill_at) and len(rounds) != 1 and not killed and _Killed.process:
                _Killed.process.kill()
                killed.append(text)
                time.sleep(0.5)  # until it is surely dead: the reply to this request must not be kept
        return reply(model, text)

    class Fixed(PeerServer):
        host = address[0]

        def bind(self) -> ThreadingHTTPServer:
            self.port = address[1]
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    server = super().bind()
                except OSError as error:
                    if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                        raise
                    time.sleep(0.2)
                else:
                    server.handle_error = lambda *_: None  # clients that were killed
                    return server

    with Fixed(made.skills, counting) as running:
        yield running


def make_records(folder: Path) -> dict[str, Any]:
    """Write the stored records again: two runs on banks, a task and formats, and one of studies."""
    shutil.rmtree(RECORDS, ignore_errors=True)
    RECORDS.mkdir(parents=True)
    banks = project(folder / "banks", {"a.eval.toml": TOY, "b.eval.toml": FORMS, "c.eval.toml": CLIMB})
    for share in (85, 60):
        run(folder, [(banks, "pytest", ["--adaptive-eval", f"--adaptive-eval-model=table:{share}"])])
    with server() as running:
        studies = project(folder / "studies", golden_streams.study_files(running.url))
        run(folder, [(studies, "pytest", ["--adaptive-eval"])])
    found = [*records(banks), *records(studies)]
    for (name, identifier), record in zip(RUNS.items(), found, strict=True):
        fixed = _fixed(record, [str(banks), str(studies)])
        fixed |= {
            "run": identifier,
            "started": f"{identifier[:4]}-{identifier[4:6]}-{identifier[6:8]}T07:08:09.000+00:00",
        }
        (RECORDS / f"{name}.json").write_text(json.dumps(fixed, sort_keys=True, indent=None) + "\n", encoding="ascii")
    return told(folder / "told")


def _fixed(value: Any, folders: Sequence[str]) -> Any:
    """Return a record without times and without this machine's folders."""
    if isinstance(value, dict):
        return {key: 0.25 if key == "seconds" else _fixed(one, folders) for key, one in value.items()}
    if isinstance(value, list):
        return [_fixed(one, folders) for one in value]
    if isinstance(value, str):
        for folder in folders:
            value = value.replace(f"{folder}/", "").replace(folder, ".")
    return value


#: Commands about the stored records. Each must end with the code that is stored.
COMMANDS: dict[str, list[str]] = {
    **{
        f"report-{name}": [
            "report", identifier, "--html", f"{name}.html", "--markdown", f"{name}.md", "--junit", f"{name}.xml",
            "--export", f"responses={name}.csv", "--github",
        ]
        for name, identifier in RUNS.items()
    },
    "lines": ["report", RUNS["first"], "--export", "responses=first.jsonl"],
    "history": ["history", "--json", "history.json"],
    "compare": ["history", "--compare", RUNS["first"], RUNS["second"], "--json", "compare.json"],
    "compare-studies": ["history", "--compare", RUNS["first"], RUNS["studies"]],
    "correlate": ["history", "--correlate", "--json", "correlate.json"],
    "drift": ["history", "--drift", "--json", "drift.json"],
    "merge": ["merge", RUNS["first"], RUNS["studies"], "-o", "merged.json"],
}  # fmt: skip


def place_records(folder: Path) -> None:
    """Put the stored records where a run leaves them."""
    runs = folder / ".adaptive-eval" / "runs"
    runs.mkdir(parents=True)
    for name, identifier in RUNS.items():
        shutil.copyfile(RECORDS / f"{name}.json", runs / f"{identifier}.json")


def told(folder: Path) -> dict[str, Any]:
    """Return what the command tells of the stored records."""
    project(folder, {})
    place_records(folder)
    outputs = {f"GITHUB_{name}": str(folder / name) for name in ("OUTPUT", "STEP_SUMMARY")}
    codes = run(
        folder,
        [(folder, "adaptive-eval", arguments) for arguments in COMMANDS.values()],
        GITHUB_ACTIONS="true",
        **outputs,
    )
    found: dict[str, Any] = {"codes": dict(zip(COMMANDS, codes, strict=True))}
    for name in ("history", "compare", "correlate", "drift"):
        found[name] = json.loads((folder / f"{name}.json").read_text())
    record = json.loads((folder / "merged.json").read_text())
    found["merged"] = [[gate["name"], gate["verdict"]["outcome"]] for gate in record["gates"]]
    found["tables"] = {}
    for path in sorted(folder.glob("*.csv")):
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        found["tables"][path.name] = [rows[0] if rows else [], len(rows)]
    lines = [json.loads(line) for line in (folder / "first.jsonl").read_text().splitlines()]
    found["tables"]["first.jsonl"] = [sorted({key for line in lines for key in line}), len(lines)]
    found["outputs"] = sorted(line.partition("=")[0] for line in (folder / "OUTPUT").read_text().splitlines())
    found["reports"] = {
        f"{name}.{suffix}": (folder / f"{name}.{suffix}").stat().st_size > 200
        for name in RUNS
        for suffix in ("html", "md", "xml")
    }
    return found


# Killed runs

#: Questions that are asked before the run of evaluations is killed, and how the request begins that kills a study.
KILLED_AT = 16 + 12 + 10 + 6
KILLED_REPLY = {"network.eval.toml": "How many", "peers.eval.toml": "You are an"}
MODEL = ["--adaptive-eval", "--adaptive-eval-model=table:85"]


def _kill(folder: Path, arguments: Sequence[str], **more: str) -> None:
    """Run pytest until it is killed."""
    with subprocess.Popen(
        [golden_project.sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**golden_project.environment(), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        _Killed.process = process
        said, _ = process.communicate(timeout=300)
        _Killed.process = None
    if process.returncode != -signal.SIGKILL:
        raise AssertionError(f"the run was to be killed, and ended with {process.returncode}\n{said}")


def evaluations(folder: Path, *, killed: bool) -> dict[str, Any]:
    """Return what a run of evaluations asks and finds, perhaps one that goes on from a killed run."""
    one = project(folder, {"a.eval.toml": TOY, "test_m.py": PYTHON, "z.eval.toml": CLIMB})
    if killed:
        _kill(one, MODEL, GOLDEN_STOP=f"{KILLED_AT}:kill")
        (one / "asked.txt").unlink()
    found = _go_on(one, MODEL)
    found["asked"] = (one / "asked.txt").read_text().split()
    return found


def study(folder: Path, name: str, *, killed: bool) -> dict[str, Any]:
    """Return the same of a study, with the calls that the server got."""
    if killed:
        with server(kill_at=KILLED_REPLY[name]) as running:
            one = project(folder, {name: golden_streams.study_files(running.url)[name]})
            _kill(one, ["--adaptive-eval"])
    with server() as running:
        one = folder if killed else project(folder, {name: golden_streams.study_files(running.url)[name]})
        found = _go_on(one, ["--adaptive-eval"])
        found["calls"] = sum(running.asked.values())
    return found


def _go_on(folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    kept = folder / ".adaptive-eval" / "journal"
    journals = len([*kept.glob("*.sqlite")])
    (code,) = run(folder, [(folder, "pytest", arguments)])
    (record,) = records(folder)
    asked = [one for interview in golden_project.asked_items(record) for one in interview["administrations"]]
    return {
        "journals": journals,
        "left": len([*kept.glob("*.sqlite*")]),
        "code": code,
        "resumed": sum(one["resumed"] for one in asked),
        "verdicts": [[gate["name"], golden_streams.without_words(gate["verdict"])] for gate in record["gates"]],
        "metrics": [golden_streams.without_words(study["metrics"]) for study in golden_project.measured(record)],
    }
