"""For the tests of the command: a place of its own, and a way to run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_adaptive_eval.cli import main


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of progress, however slow the machine."""
    monkeypatch.setattr("pytest_adaptive_eval.cli.screen.INTERVAL", 1e9)
    monkeypatch.setattr("pytest_adaptive_eval.cli.screen.Screen.begin", lambda *_: None)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str, str]]:
    """Run the command as `command` does, where it may also exit; no warning and no traceback may be shown."""

    def ended(*arguments: object) -> tuple[object, str, str]:
        code: object
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "Warning" not in err
        return code, out, err

    return ended
