"""Servers on loopback: of chat models, of models that assess each other, and of a service that takes alerts."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast


def completion(model: str, text: str, **more: Any) -> dict[str, Any]:
    """The reply of a model."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    told = {"model": model, "choices": choices, "usage": usage, **more}
    return {"id": "x", "object": "chat.completion", "created": 1, **told}


def failure(message: str) -> dict[str, Any]:
    """The body of a reply that is none."""
    return {"error": {"message": message}}


class _Server(ThreadingHTTPServer):
    """A server to whom a client that hangs up is no news.

    Its traceback would be read in a thread of its own, and two threads that parse sources disturb each other in Python
    3.11 (`SystemError: AST constructor recursion depth mismatch`).
    """

    def handle_error(self, *about: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*about)


class LoopbackServer:
    """Serves from threads.

    Args:
        port: 0 for any that is free.
    """

    host = "127.0.0.1"

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        self._handler, self.port = handler, port

    def __enter__(self) -> Self:
        self._server = self.bind()
        self.port = self._server.server_address[1]
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def bind(self) -> ThreadingHTTPServer:
        """Take the address."""
        return _Server((self.host, self.port), self._handler)

    @property
    def url(self) -> str:
        """Of its API."""
        return f"http://{self.host}:{self.port}/v1"


class Silent(BaseHTTPRequestHandler):
    """A handler without a log, that reads and writes JSON."""

    disable_nagle_algorithm = True  # a body after its headers does not wait for the client's acknowledgement

    def read(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send(self, body: bytes, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


class JsonServer(LoopbackServer):
    """Serves chat models, and lists them.

    Args:
        answer: Takes the body and the headers of a chat, and gives the reply with its status.
    """

    def __init__(
        self,
        models: Sequence[str],
        answer: Callable[[Any, Mapping[str, str]], tuple[dict[str, Any], int]],
        port: int = 0,
    ) -> None:
        class Handler(Silent):
            protocol_version = "HTTP/1.1"  # connections stay open

            def do_GET(self) -> None:
                self._reply({"object": "list", "data": [{"id": name, "created": 1} for name in models]})

            def do_POST(self) -> None:
                self._reply(*answer(self.read(), cast("Mapping[str, str]", self.headers)))

            def _reply(self, data: Any, code: int = 200) -> None:
                self.send(json.dumps(data).encode(), code, Content_Type="application/json")

        super().__init__(Handler, port)


class AlertReceiver(LoopbackServer):
    """A service for alerts that gives its replies in order, and the last one again and again.

    Args:
        replies: Status, body and headers of each.
    """

    def __init__(self, *replies: tuple[int, bytes, dict[str, str]]) -> None:
        #: Path and body of each request.
        self.requests: list[tuple[str, Any]] = []
        receiver, remaining = self, list(replies or [(200, b"", {})])

        class Handler(Silent):
            def do_POST(self) -> None:
                receiver.requests.append((self.path, self.read()))
                code, body, headers = remaining.pop(0) if len(remaining) > 1 else remaining[0]
                self.send(body, code, **headers)

        super().__init__(Handler)


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


class PeerServer(JsonServer):
    """A server of such models.

    Args:
        reply: Instead of `said`: gives the text, or None for a fault of the server.
    """

    def __init__(
        self, skills: Mapping[str, float] = SKILLS, reply: Callable[[str, str], str | None] | None = None
    ) -> None:
        super().__init__(list(skills), self._answer)
        self.skills = dict(skills)
        self.reply = reply or (lambda model, text: said(model, text, self.skills))
        #: What was asked of each model.
        self.asked: Counter[str] = Counter()

    def _answer(self, body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        model, content = body["model"], body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1].get("text", "")
        if model not in self.skills:
            return failure(f"there is no model {model}"), 404
        self.asked[model] += 1
        found = self.reply(model, text)
        if found is None:
            return failure("out of order"), 500
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        return completion(model, found, usage=usage), 200
