"""A server that starts late: the run says that it waits while it waits, and says nothing where it need not."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion
from laboratory import plugins

#: Seconds after which a run that says nothing, or does not end, counts as hanging.
DEADLINE = 60


def answer(_: Any, __: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    return completion("m", "right"), 200


def evaluation(lab: Any, url: str) -> None:
    lab.bank(n=20)
    (lab.path / "adaptive-eval.toml").write_text(
        f'[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\nmodel = "{url}#m"\n'
        'model_options = { revision = "1" }\n[[eval.gate]]\nat_least = 0.5\n'
    )


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("-n2",)], ids=["alone", "xdist"])
def test_the_wait_for_a_server_is_on_the_terminal_before_the_server_is_there(lab: Any, flags: tuple[str, ...]) -> None:
    if flags:
        pytest.importorskip("xdist", reason="needs pytest-xdist (extra xdist)")
    with JsonServer(["m"], answer) as gone:
        port, url = gone.port, gone.url
    evaluation(lab, url)
    command = [sys.executable, "-m", "pytest", *plugins(flags), "--adaptive-eval", *flags]
    run = subprocess.Popen(command, cwd=lab.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.stdout is not None
    guard = threading.Timer(DEADLINE, run.kill)
    guard.start()
    try:
        lines = []
        for line in run.stdout:
            lines.append(line)
            if "waiting up to 120 s" in line:
                break
        assert run.poll() is None, "".join(lines)
        assert f"adaptive-eval: waiting up to 120 s for {url} to start: " in lines[-1]
        with JsonServer(["m"], answer, port):
            rest = run.stdout.read()
            assert run.wait() == 0, "".join(lines) + rest
    finally:
        guard.cancel()
        run.kill()
        run.wait()
        run.stdout.close()
    assert "waiting up to" not in rest, "said once"
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]


def test_nothing_is_said_of_waiting_where_the_server_is_there(lab: Any) -> None:
    with JsonServer(["m"], answer) as server:
        evaluation(lab, server.url)
        result = lab.run("-v", logging=True)
    assert result.ret == 0
    assert "waiting up to" not in result.stdout.str() + result.stderr.str()
