"""A server of chat models on loopback that answers every request with JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


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


class JsonServer:
    """Serves from threads, and lists its models.

    Args:
        answer: Takes the body and the headers of a chat, and gives the reply with its status.
        port: 0 for any that is free.
    """

    def __init__(
        self,
        models: Sequence[str],
        answer: Callable[[Any, Mapping[str, str]], tuple[dict[str, Any], int]],
        port: int = 0,
    ) -> None:
        self.port = port

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": name, "created": 1} for name in models]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(*answer(body, cast("Mapping[str, str]", self.headers)))

            def _send(self, data: Any, code: int = 200) -> None:
                text = json.dumps(data).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self._handler = Handler

    def __enter__(self) -> JsonServer:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self.port = self._server.server_address[1]
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
        return f"http://127.0.0.1:{self.port}/v1"
