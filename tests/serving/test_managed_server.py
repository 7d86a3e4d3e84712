"""Servers that a run starts: shared by its processes, restarted, and ended with the run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from laboratory import plugins

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.serving.supervisor import LINGER
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.base import Message

SCRIPT = Path(__file__).parent / "model_process.py"
#: Seconds after which a process counts as hanging.
DEADLINE = 60.0
QUESTIONS = 20


def spec(log: Path, *models: str, model: str = "") -> str:
    """The served process as `load_model` takes it."""
    command = [sys.executable, str(SCRIPT), "{port}", str(log), *models]
    return f"serve:{shlex.join(command)}{model}"


def evaluation(lab: Any, tmp_path: Path, repeats: int = 1) -> Path:
    """Evaluations of one served model. Return the log of its process."""
    log = tmp_path / "served.log"
    lab.bank(n=QUESTIONS)
    table = (
        '[[eval]]\nname = "{name}"\nbank = "toy.jsonl"\nbudget = "100%"\nmodel = """{model}"""\n'
        "[[eval.gate]]\nat_least = 0.5\n"
    )
    text = "".join(table.format(name=f"e{n}", model=spec(log)) for n in range(repeats))
    (lab.path / "adaptive-eval.toml").write_text(text)
    return log


def starts(log: Path) -> list[int]:
    """Process ids of all starts so far."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("start ")]


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"not within {DEADLINE:g} s: {what}"
        time.sleep(0.05)


def ended(pid: int) -> bool:
    """Whether the process ended; one that waits for its parent counts."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.fixture(autouse=True)
def _processes_are_readable() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("reads states of processes in /proc")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n0",), ("-n2",)], ids=["alone", "n0", "n2"])
def test_two_evaluations_share_a_server_that_ends_with_the_run(
    lab: Any, tmp_path: Path, workers: Sequence[str]
) -> None:
    log = evaluation(lab, tmp_path, repeats=2)
    result = lab.run_with(workers)
    assert sorted(outcome for _, outcome in lab.outcomes()) == ["PASS", "PASS"]
    assert result.ret == pytest.ExitCode.OK
    (pid,) = starts(log)
    wait_until(lambda: ended(pid), "the server ends after the run")


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_server(lab: Any, tmp_path: Path) -> None:
    log = evaluation(lab, tmp_path)
    (lab.path / "conftest.py").write_text(
        "import pytest, time\n@pytest.fixture(autouse=True)\ndef slow():\n    time.sleep(1)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", *plugins(()), "--adaptive-eval"],
        cwd=lab.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(starts(log)) > 0 and "chat" in log.read_text(), "a first question")
    finally:
        run.kill()
        run.wait()
    (pid,) = starts(log)
    wait_until(lambda: ended(pid), "the server ends after its run was killed")


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_midst_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "served.log"
    from pytest_adaptive_eval.items.item import Item, Status

    subject = load_model(spec(log), cache=tmp_path)
    items = [Item(f"q{n}", "?", "right") for n in range(3)]
    try:
        assert {answer.status for answer in subject.answer(items)} == {Status.OK}
        os.kill(starts(log)[0], signal.SIGKILL)
        assert {answer.status for answer in subject.answer(items)} == {Status.OK}
        assert len(starts(log)) == 2
    finally:
        subject.close()


def test_identity_depends_on_the_command_and_not_on_the_port(tmp_path: Path) -> None:
    log = tmp_path / "served.log"
    identities = []
    for folder, text in (("a", spec(log)), ("b", spec(log)), ("c", spec(log, "m", "n", model="#m"))):
        subject = load_model(text, cache=tmp_path / folder)
        identities.append(subject.identity)
        subject.close()
    assert len({identity.environment["endpoint"] for identity in identities}) == 3, "every start has a port of its own"
    first, again, other = (identity.checkpoint for identity in identities)
    assert first == again != other
    assert [identity.name for identity in identities] == ["m", "m", "m"]


def test_a_served_agent_answers(tmp_path: Path) -> None:
    agent = load_model(spec(tmp_path / "served.log"), cache=tmp_path, chats=True)
    try:
        assert agent.ask([Message("user", "?")]).text == "right"
    finally:
        agent.close()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("no-such-server --port {port}", {}, "'no-such-server' is not installed"),
        (f"{sys.executable} -c pass", {}, "has no {port}"),
        (f"{sys.executable} -c 'pass {{port}}", {}, "cannot be split into words"),
        (
            f"{sys.executable} -c 'print(\"no memory for {{port}}\"); raise SystemExit(7)'",
            {},
            r"ended with exit code 7 before it was healthy; it wrote .*no memory for",
        ),
        (
            f"{sys.executable} -c 'import time; time.sleep(60)  # {{port}}'",
            {"start_timeout": 0.5},
            r"is not healthy after 0.5 s.*raise start_timeout",
        ),
        (spec(Path("served.log"), "m", "n").removeprefix("serve:"), {}, r"lists several models or none \(m, n\)"),
    ],
    ids=["missing", "no port", "quotes", "ends", "never healthy", "several models"],
)
def test_a_server_that_cannot_be_used_is_a_usage_error(
    command: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"(?s){message.replace('{port}', '[{]port[}]')}"):
        load_model(f"serve:{command}", cache=tmp_path, **options)


def test_an_unknown_preset_names_the_known_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as where the package is not installed
    for model in (f"serve:llama.cpp#{tmp_path}", f"serve:llama.cpp#{tmp_path / 'model.gguf'}"):
        with pytest.raises(ConfigError, match="the server 'llama-server' is not installed"):
            load_model(model, cache=tmp_path)
    with pytest.raises(ConfigError, match="serve is 'tgi', expected one of vllm, sglang"):
        load_model(str(tmp_path), serve="tgi")


@pytest.mark.slow
def test_a_server_outlives_a_short_time_without_users(tmp_path: Path) -> None:
    log = tmp_path / "served.log"
    for _ in range(2):
        load_model(spec(log), cache=tmp_path).close()
    (pid,) = starts(log)
    assert LINGER > 0
    wait_until(lambda: ended(pid), "the server ends when nobody uses it")
