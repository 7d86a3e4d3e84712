"""An API key in a whole run: sent with every request, and in no file, report or line that the run leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

import pytest_adaptive_eval.models.endpoint
import pytest_adaptive_eval.reports.page  # noqa: F401

KEY = "sk-4f9e2b7c1d8a6035-not-for-anyone"


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server that tells the key to whoever reads its answers and errors; its URL, and the headers it was sent."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "m", "created": 1}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            last = str(body["messages"][-1]["content"]).split()[-1]
            number = int(last) if last.isdigit() else -1  # the server is tried out before the first question
            sent.append(self.headers.get("Authorization", ""))
            if number == 7:
                self._send({"error": {"message": f"bad request, Authorization: {sent[-1]}"}}, 400)
                return
            text = f"your key is {sent[-1]}" if number == 20 else "right" if number % 5 else "wrong"
            message = {"role": "assistant", "content": text}
            choices = [{"index": 0, "finish_reason": "stop", "message": message}]
            self._send({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})

        def _send(self, data: Any, code: int = 200) -> None:
            text = json.dumps(data).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            """Silent."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}/v1#m", sent
    running.shutdown()
    running.server_close()
    thread.join()


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
    result = lab.run(verbose, "-rA", "--junitxml=pytest.xml", "--log-level=DEBUG", *writes)
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS", "FAIL"]
    assert len(sent) >= 60
    assert set(sent) == {f"Bearer {KEY}"}
    asked = {a["item"]: a for a in lab.record["interviews"][0]["administrations"]}
    assert {name for name, a in asked.items() if a["score"] is None} == {"q7", "q20"}
    assert "the reply holds the API key" in asked["q20"]["detail"]
    kept = [path for path in Path(lab.path).rglob("*") if path.is_file()]
    assert {"html.html", "junit.xml", "record.json", "pytest.xml"} <= {path.name for path in kept}
    part = KEY[3:19]
    assert [path for path in kept if part.encode() in path.read_bytes()] == []
    assert part not in result.stdout.str() + result.stderr.str()
