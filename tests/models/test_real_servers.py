"""Real model servers answer as the checkpoint that they serve does in this process."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

import real_servers
from real_servers import CHECKPOINT, LLAMA_CONTEXT, TRANSFORMERS_COMMAND, RealServer, llama_cpp

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.endpoint.opening import NEUTRAL

pytestmark = pytest.mark.slow

BANK = Path(__file__).parents[2] / "fixtures" / "banks" / "text.bank"


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(read_bank(BANK).items)[::6]


@pytest.fixture(scope="module")
def expected(items: list[Item]) -> list[str]:
    """What the checkpoint answers in this process."""
    pytest.importorskip("torch", reason="the local checkpoint needs torch (extra hf)")
    return [answer.text for answer in load_model(str(CHECKPOINT)).answer(items)]


def test_llama_cpp_answers_as_the_local_checkpoint(
    llama_server: RealServer, items: list[Item], expected: list[str]
) -> None:
    subject = load_model(llama_server.spec)
    assert [answer.text for answer in subject.answer(items)] == expected
    told = subject.identity.environment
    assert (told["context"], told["system_fingerprint"], told["decoding fields sent"]) == (
        LLAMA_CONTEXT,
        ANY,
        NEUTRAL,
    )
    assert "answered as" not in told


@pytest.mark.usefixtures("llama_server")  # skips where it cannot run
def test_a_repetition_penalty_of_llama_cpp_changes_no_answer(
    gguf_file: Path, items: list[Item], expected: list[str], tmp_path: Path
) -> None:
    server = llama_cpp(gguf_file, tmp_path / "log.txt", repeat_penalty=1.5)
    server.start()
    try:
        assert [answer.text for answer in load_model(server.spec).answer(items)] == expected
        penalised = load_model(server.spec, extra={"repeat_penalty": None})
        assert [answer.text for answer in penalised.answer(items)] != expected
    finally:
        server.kill()


def test_llama_cpp_refuses_pictures_before_the_first_question(llama_server: RealServer) -> None:
    pictures = read_bank(BANK.parent / "vision.bank").items[:3]
    with pytest.raises(ConfigError, match="gives no answer to an item with one"):
        load_model(llama_server.spec, retries=0).prepare(pictures)


def test_a_generation_configs_repetition_penalty_changes_no_answer(
    transformers_server: RealServer, items: list[Item], expected: list[str]
) -> None:
    accept = [f"{transformers_server.model}@main"]
    with pytest.raises(ConfigError, match=re.escape(f'accept_models = ["{accept[0]}"]')):
        load_model(transformers_server.spec)
    subject = load_model(transformers_server.spec, accept_models=accept)
    assert [answer.text for answer in subject.answer(items)] == expected
    assert subject.identity.environment["decoding fields refused"] == [
        "top_k",
        "min_p",
        "repetition_penalty",
        "repeat_penalty",
    ]
    penalised = load_model(transformers_server.spec, accept_models=accept, extra={"frequency_penalty": None})
    assert [answer.text for answer in penalised.answer(items)] != expected


def test_transformers_serve_drops_pictures_and_is_refused(transformers_server: RealServer) -> None:
    pictures = read_bank(BANK.parent / "vision.bank").items[:6]
    subject = load_model(transformers_server.spec, accept_models=[f"{transformers_server.model}@main"])
    with pytest.raises(ConfigError, match="the bank has pictures"):
        subject.prepare(pictures)


def program(folder: Path, name: str, text: str) -> None:
    """Write a Python program into a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


@pytest.mark.usefixtures("llama_server")  # skips where it cannot run
def test_llama_cpp_that_the_run_starts_answers_like_the_checkpoint(
    gguf_file: Path, items: list[Item], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tmp_path / "text-late"
    served.mkdir()
    shutil.copy(gguf_file, served)
    flags = 'import sys; flags = dict(zip(sys.argv[1::2], sys.argv[2::2])); assert flags["--alias"] == "text-late"\n'
    run = (
        f'sys.argv = ["", flags["--model"], flags["--port"], "1.0"]\n'
        f'import runpy\nrunpy.run_path({real_servers.__file__!r}, run_name="__main__")\n'
    )
    program(tmp_path / "bin", "llama-server", flags + run)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    subject = load_model(str(served), serve="llama.cpp", cache=tmp_path / "cache")
    try:
        assert [answer.text for answer in subject.answer(items)] == expected
        assert subject.identity.name == "text-late"
        assert subject.identity.environment["weights"].startswith("read by the server from files")
    finally:
        subject.close()


@pytest.mark.usefixtures("transformers_server")  # skips where it cannot run
def test_transformers_serve_that_the_run_starts_answers_like_the_checkpoint(
    served_checkpoint: Path, items: list[Item], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "transformers", f"import sys\n{TRANSFORMERS_COMMAND}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    subject = load_model(
        str(served_checkpoint),
        serve="transformers",
        serve_args="--device cpu --dtype float32",
        cache=tmp_path / "cache",
    )
    try:
        assert [answer.text for answer in subject.answer(items)] == expected
    finally:
        subject.close()
