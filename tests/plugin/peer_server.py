"""Models on loopback that peer-assess each other: each has a skill, and judges skills with some noise of its own."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Models and their skills.
SKILLS = {"ant": 3.0, "bee": 3.4, "cat": 3.8, "dog": 4.2, "elk": 4.6}
OPENINGS = {"Write one": "task", "Answer the": "answer", "How good": "vote", "You are an": "judgment"}


def said(model: str, text: str, skills: Mapping[str, float]) -> str:
    """The reply of a model, by a hash of what it is asked."""
    digest = hashlib.sha256(f"{model} {text}".encode()).digest()
    noise = sum(digest[:12]) / 12 / 255 - 0.5  # of sd .083
    kind = next((name for opening, name in OPENINGS.items() if text.startswith(opening)), "")
    if kind == "task":
        return f"Why is {digest.hex()[:8]} of {model} so?"
    if kind == "answer":
        return f"skill {skills[model]}"
    if not kind:
        return "ok"
    skill = 4.0 if kind == "vote" else float(re.findall(r"skill ([\d.]+)", text)[-1])
    return f"<rank>{min(max(round(skill + 5 * noise), 1), 5)}</rank>"


class PeerServer:
    """Serves from threads.

    Parameters
    ----------
    skills : mapping
    reply : callable, optional
        Instead of `said`: gives the text, or None for a fault of the server.
    """

    def __init__(
        self, skills: Mapping[str, float] = SKILLS, reply: Callable[[str, str], str | None] | None = None
    ) -> None:
        self.skills = dict(skills)
        self.reply = reply or (lambda model, text: said(model, text, self.skills))
        #: What was asked of each model.
        self.asked: Counter[str] = Counter()

    def __enter__(self) -> PeerServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": name, "created": 1} for name in outer.skills]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content = body["messages"][-1]["content"]
                text = content if isinstance(content, str) else content[-1].get("text", "")
                if body["model"] not in outer.skills:
                    self._send({"error": {"message": f"there is no model {body['model']}"}}, 404)
                    return
                outer.asked[body["model"]] += 1
                found = outer.reply(body["model"], text)
                if found is None:
                    self._send({"error": {"message": "out of order"}}, 500)
                    return
                self._send(
                    {
                        "id": "x",
                        "object": "chat.completion",
                        "created": 1,
                        "model": body["model"],
                        "choices": [
                            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": found}}
                        ],
                        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
                    }
                )

            def _send(self, data: Any, code: int = 200) -> None:
                text = json.dumps(data).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Of its API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"
