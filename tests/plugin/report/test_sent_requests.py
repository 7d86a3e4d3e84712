"""The store of answers keeps each request as it was sent, and the page shows it with its question."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion

from pytest_adaptive_eval.cli import main

KEY = "sk-77aa01bc45-of-nobody-at-all"
PAGE = "--adaptive-eval-html=page.html"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Four questions, one of which holds the key of their server; returns the bodies of requests for them."""
    monkeypatch.setenv("LAB_KEY", KEY)
    monkeypatch.delenv("CI", raising=False)
    bodies: list[Any] = []

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        bodies.append(body)
        return completion("m", "yes"), 200

    items = [{"id": f"q{n}", "prompt": f"Ist {n} > ä?", "answer": "yes"} for n in range(3)]
    items.append({"id": "q3", "prompt": f"Is {KEY} a key?", "answer": "yes"})
    (pytester.path / "b.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    with JsonServer(["m"], answer) as server:
        (pytester.path / "adaptive-eval.toml").write_text(
            f'[[eval]]\nbank = "b.jsonl"\nsystem = "Be brief."\nbudget = "100%"\nstop = "budget"\n'
            f'model = "{server.url}#m"\nmodel_options = {{ key_env = "LAB_KEY" }}\n[[eval.gate]]\nat_least = 0.5\n'
        )
        yield pytester, bodies


def shown(path: Path) -> list[str]:
    """Requests on a page."""
    page = path.read_text().partition("<main")[2]
    found = re.findall(r"<details><summary>Request as sent</summary><pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    return [unescape(request) for request in found]


def test_run_and_report_show_each_request_as_it_was_sent(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester, bodies = project
    run = pytester.runpytest("--adaptive-eval", PAGE, "-p", "no:cacheprovider")
    assert run.ret == 0
    sent = [body for body in bodies if body["messages"][-1]["content"].startswith("Is")]
    assert len(sent) == 4
    requests = shown(pytester.path / "page.html")
    hidden = json.dumps(sent).replace(KEY, "[key]")
    assert sorted(map(json.dumps, map(json.loads, requests))) == sorted(map(json.dumps, json.loads(hidden)))
    assert all("ä" in request or "[key]" in request for request in requests)
    files = [path for path in pytester.path.rglob("*") if path.is_file() and path.name != "b.jsonl"]
    store = pytester.path / ".adaptive-eval" / "answers.sqlite"
    assert store in files
    assert KEY.encode() not in store.read_bytes()
    monkeypatch.chdir(pytester.path)
    main(["report", "latest", "--html", "again.html"])
    assert shown(pytester.path / "again.html") == requests
    store.unlink()
    main(["report", "latest", "--html", "later.html"])
    assert shown(pytester.path / "later.html") == []


@pytest.mark.slow
def test_nothing_is_kept_where_answers_are_not_shared(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester, _ = project
    monkeypatch.setenv("CI", "true")
    assert pytester.runpytest("--adaptive-eval", PAGE, "-p", "no:cacheprovider").ret == 0
    assert shown(pytester.path / "page.html") == []
    assert not list(pytester.path.rglob("answers.sqlite"))
