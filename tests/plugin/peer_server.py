"""Models on loopback that peer-assess each other: each has a skill, and judges skills with some noise of its own."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from json_server import JsonServer, completion, failure

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

    def __enter__(self) -> PeerServer:
        super().__enter__()
        return self

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
