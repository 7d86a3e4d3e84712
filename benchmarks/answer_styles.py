"""Areas of a server that is always right, and of one that is always wrong, in six styles of answers.

``python -m benchmarks.answer_styles [--tasks addition ...] [--queries 3]`` asks a server on loopback every question of
every task family in words, at all levels. It answers tersely, chattily, after a chain of thought, after reasoning in
tags, in LaTeX, or in JSON. The right server should reach the top area of each family, the wrong one no more than
guessing. Programs are run in this process: they are those of the package.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.tasks import FAMILIES, TaskFamily, families
from tests.fake_server import JsonServer, completion
from tests.tasks.solvers import InProcess, solve

#: The families in words, which run programs in this process.
IN_WORDS: Mapping[str, TaskFamily] = {
    name: family for name, family in families(runner=InProcess()).items() if not family.pictorial
}
TEXTS = ("scrambled", "masked", "instructions", "writing", "retelling")
PROGRAMS = ("code_generation", "code_repair")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server says: its answer, another one that it considers before, and what kind of thing they are."""

    answer: str
    other: str
    kind: str


@dataclass(frozen=True, slots=True)
class Result:
    """Area of a model, and the questions with another score than the model wants, with that score."""

    area: float
    unlike: Sequence[str]


def terse(reply: Reply) -> str:
    """Return the answer alone."""
    return reply.answer


def chatty(reply: Reply) -> str:
    """Return the answer among politeness."""
    if reply.kind == "short":
        return (
            f"Great question! I had a careful look at it. The answer is **{reply.answer}**.\n\nLet me know if there is "
            "anything else that I can help you with!"
        )
    return f"Sure! Here is what you asked for:\n\n{_block(reply)}\n\nLet me know if you would like me to change it!"


def chain_of_thought(reply: Reply) -> str:
    """Return the answer after steps that consider another one."""
    steps = "Let me think step by step.\n\n1. First I read the question carefully.\n2. Then I work it out"
    if reply.kind == "short":
        return f"{steps}: at first sight it is {reply.other}.\n3. On checking, that is wrong.\n\nAnswer: {reply.answer}"
    return f"{steps}, part by part.\n3. Now I write it down.\n\n{_block(reply)}"


def reasoning_tags(reply: Reply) -> str:
    """Return the answer after reasoning in tags, which considers another one."""
    last = f"Answer: {reply.answer}" if reply.kind == "short" else _block(reply)
    return f"<think>\nHm. It could be this:\n{reply.other}\nNo, wait. Answer: {reply.other}? No.\n</think>\n\n{last}"


def latex(reply: Reply) -> str:
    """Return the answer in a box of LaTeX, a text in an environment, or a program in a listing."""
    if reply.kind == "program":
        return f"\\textbf{{Solution.}}\n\\begin{{verbatim}}\n{reply.answer}\\end{{verbatim}}"
    if reply.kind == "text":
        return f"\\begin{{quote}}\n{reply.answer}\n\\end{{quote}}"
    words = reply.answer if reply.answer[-1:].isdigit() else f"\\text{{{reply.answer}}}"
    return f"We find that\n\\[\n\\boxed{{{words}}}\n\\]"


def as_json(reply: Reply) -> str:
    """Return the answer as a field of a JSON object."""
    return json.dumps({"reasoning": "I worked it out step by step.", "answer": reply.answer}, ensure_ascii=False)


def _block(reply: Reply) -> str:
    return f"```python\n{reply.answer}\n```" if reply.kind == "program" else reply.answer


STYLES: Mapping[str, Callable[[Reply], str]] = {
    "terse": terse,
    "chatty": chatty,
    "chain of thought": chain_of_thought,
    "reasoning tags": reasoning_tags,
    "latex": latex,
    "json": as_json,
}


def right_answer(family: TaskFamily, level: int, seed: int) -> str:
    """Return the answer to a question, of a family that wants a text one that keeps all rules."""
    return family.question(level, seed).answer or solve(family, level, seed)


def _reply(family: TaskFamily, level: int, seed: int, right: bool) -> Reply:
    answer, item = right_answer(family, level, seed), family.item(level, seed)
    seeds = range(seed + 1000, seed + 1100)
    others = (right_answer(family, level, other) for other in seeds)
    other = next(other for other in others if item.grade(other) < 1.0)
    kind = "program" if family.name in PROGRAMS else "text" if family.name in TEXTS else "short"
    return Reply(answer, other, kind) if right else Reply(other, answer, kind)


class StyleServer:
    """A server on loopback with a model for each style, one that is right and one that is wrong."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, bool], Reply] = {}
        self._models = {f"{style}, {word}": (style, word == "right") for style in STYLES for word in ("right", "wrong")}
        self._server = JsonServer(list(self._models), self._answer)

    def _answer(self, body: Any, _: Any) -> tuple[dict[str, Any], int]:
        style, right = self._models[body["model"]]
        reply = self._replies.get((body["messages"][-1]["content"], right))
        return completion(body["model"], "ok" if reply is None else STYLES[style](reply)), 200

    def __enter__(self) -> StyleServer:
        self._server.__enter__()
        self._subjects = {
            model: load_model(f"{self._server.url}#{name}", max_tokens=4096) for name, model in self._models.items()
        }
        return self

    def __exit__(self, *error: object) -> None:
        for subject in self._subjects.values():
            subject.close()
        self._server.__exit__(*error)

    def areas(self, name: str, queries: int, levels: Sequence[int] = ()) -> Mapping[tuple[str, bool], Result]:
        """Return the results on a family, by style and by whether the model is right, over some levels or all."""
        family = IN_WORDS[name]
        items = [family.item(level, seed) for level in levels or range(1, family.levels + 1) for seed in range(queries)]
        for item in items:
            for right in (True, False):
                reply = _reply(family, int(item.meta["level"]), int(item.meta["seed"]), right)
                self._replies[item.prompt, right] = reply
        found = {}
        for (style, right), subject in self._subjects.items():
            scores = [item.grade(said.text) for item, said in zip(items, subject.answer(items), strict=True)]
            unlike = [f"{item.id} {x:.2f}" for item, x in zip(items, scores, strict=True) if x != float(right)]
            found[style, right] = Result(float(np.sum(scores)) / queries, unlike)
        return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=list(IN_WORDS), help="all by default")
    parser.add_argument("--queries", type=int, default=3, help="questions a level (default %(default)s)")
    parser.add_argument("--tell", action="store_true", help="name the questions with another score")
    arguments = parser.parse_args()
    print(f"{'task':16} {'levels':>6}  {'guess':>5}  " + "  ".join(f"{style:>16}" for style in STYLES))
    with StyleServer() as server:
        for name in arguments.tasks:
            found = server.areas(name, arguments.queries)
            levels, floor = FAMILIES[name].levels, FAMILIES[name].guess_floor
            cells = (f"{found[style, True].area:.2f} / {found[style, False].area:.2f}" for style in STYLES)
            row = "  ".join(f"{cell:>16}" for cell in cells)
            print(f"{name:16} {levels:6}  {floor * levels:5.2f}  {row}", flush=True)
            for (style, right), result in found.items() if arguments.tell else ():
                if result.unlike:
                    print(f"  {style}, {'right' if right else 'wrong'}: {', '.join(result.unlike[:8])}")


if __name__ == "__main__":
    main()
