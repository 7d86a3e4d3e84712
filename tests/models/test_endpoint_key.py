"""An API key in a whole run: sent with every request, and shown in no report or line; an answer is not edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion, failure

import pytest_adaptive_eval.reports.page  # noqa: F401

KEY = "sk-4f9e2b7c1d8a6035-not-for-anyone"


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server that tells the key to whoever reads its answers and errors; its URL, and the headers it was sent."""
    sent: list[str] = []

    def answer(body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        last = str(body["messages"][-1]["content"]).split()[-1]
        number = int(last) if last.isdigit() else -1  # the server is tried out before the first question
        sent.append(headers.get("Authorization", ""))
        if number == 7:
            return failure(f"bad request, Authorization: {sent[-1]}"), 400
        text = f"your key is {sent[-1]}" if number == 20 else "right" if number % 5 else "wrong"
        return completion("m", text), 200

    with JsonServer(["m"], answer) as running:
        yield f"{running.url}#m", sent


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("verbose", ["-q", "-vv"])
def test_a_run_leaves_the_key_nowhere(
    lab: Any, server: tuple[str, list[str]], verbose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = server
    monkeypatch.setenv("LAB_KEY", KEY)
    lab.bank(n=60)
    options = 'model_options = { key_env = "LAB_KEY", revision = "1" }'
    (lab.path / "adaptive-eval.toml").write_text(
        f'[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\nstop = "budget"\nmodel = "{url}"\n{options}\n'
        "[[eval.gate]]\nat_least = 0.6\n[[eval.gate]]\nat_least = 0.95\n"
    )
    writes = [
        f"--adaptive-eval-{name}={name}.{kind}"
        for name, kind in (("html", "html"), ("junit", "xml"), ("record", "json"))
    ]
    result = lab.run(verbose, "-rA", "--junitxml=pytest.xml", "--log-level=DEBUG", *writes, logging=True)
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS", "FAIL"]
    assert len(sent) >= 60
    assert set(sent) == {f"Bearer {KEY}"}
    asked = {a["item"]: a for a in lab.record["interviews"][0]["administrations"]}
    assert {name for name, a in asked.items() if a["score"] is None} == {"q7"}
    assert (asked["q20"]["text"], asked["q20"]["score"]) == (f"your key is Bearer {KEY}", 0.0)  # as it was graded
    kept = [path for path in Path(lab.path).rglob("*") if path.is_file()]
    shown = {"html.html", "junit.xml", "pytest.xml"}
    assert shown <= {path.name for path in kept}
    part = KEY[3:19]
    assert [path for path in kept if path.name in shown and part.encode() in path.read_bytes()] == []
    assert KEY not in str([a for name, a in asked.items() if name != "q20"])
    assert part not in result.stdout.str() + result.stderr.str()
