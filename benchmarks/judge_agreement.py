"""Agreement of a judge with people's labels on free text, beside graders by code.

``python -m benchmarks.judge_agreement [--judge SPEC] [--lines N]`` reads ``evouna`` and ``openqa_eval`` of the answers
of real models (``ADAPTIVE_EVAL_DATA``, default ``../shared/data``), whose labels are by people, and prints the share of
lines on which each grader agrees with them, the right ones that it refuses and the wrong ones that it accepts.

SPEC is a folder or ``http://HOST:PORT/v1#MODEL`` of a chat model. Without one the judge is a stand-in by code, which
ranks by the share of the accepted answer's words that stand in the answer. Its figures show what the path from a prompt
to a score makes of such a judge, and nothing about models.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.network_agents import CodedAgent
from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.judging import Judge

FILES = ("evouna", "openqa_eval")


@dataclass(frozen=True)
class Line:
    """Answer with its accepted answers and its label by people."""

    question: str
    accepted: tuple[str, ...]
    answer: str
    right: bool


def lines(file: str) -> Iterator[Line]:
    """The labelled lines of one file that are whole."""
    folder = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data")) / "answers"
    with gzip.open(folder / f"{file}.jsonl.gz", "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            if row.get("label") is None or row.get("cut") or row.get("weak_label"):
                continue
            gold = row["gold"] if isinstance(row["gold"], list) else str(row["gold"]).split("/")
            accepted = tuple(str(one).strip() for one in gold if str(one).strip())
            yield Line(row["question"], accepted, row["answer"], bool(row["label"]))


def by_code(grader: str) -> Callable[[Line], bool]:
    """Whether a grader accepts the answer by any accepted one."""

    def accepts(line: Line) -> bool:
        item = Item("x", line.question, line.accepted[0], grader, others=line.accepted[1:])
        return item.grade(line.answer) >= 0.5

    return accepts


def standing_in(text: str) -> str:
    """A rank by the largest share of an accepted answer's words that stand in the answer."""
    parts = {name: text.partition(f"[{name} ")[2].partition("[end of")[0] for name in ("accepted answer", "answer")}
    words = {name: part.partition("]")[2].casefold() for name, part in parts.items()}
    said = set(re.findall(r"\w+", words["answer"]))
    shares = []
    for accepted in filter(str.strip, words["accepted answer"].splitlines()):
        wanted = set(re.findall(r"\w+", accepted)) - {"the", "a", "an", "of"}
        shares.append(len(wanted & said) / len(wanted) if wanted else 0.0)
    return f"<rank>{1 + round(4 * max(shares, default=0.0))}</rank>"


def by_judge(judge: Judge) -> Callable[[Line], bool]:
    """Whether a judge finds the answer right."""

    def accepts(line: Line) -> bool:
        answers: Any = "\n".join(line.accepted)
        try:
            return judge.score(Item("x", line.question, answers, "contains"), line.answer) >= 0.75
        except Unscored:
            return False

    return accepts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="", metavar="SPEC")
    parser.add_argument("--lines", type=int, default=0, metavar="N", help="first N lines of each file")
    options = parser.parse_args()
    spec = options.judge
    judge = Judge(
        spec or "stand-in",
        (lambda: load_model(spec, chats=True)) if spec else lambda: CodedAgent("stand-in", standing_in),
    )
    graders = {name: by_code(name) for name in ("exact", "exact_match", "f1", "contains")} | {
        f"judge {judge.name}": by_judge(judge)
    }
    for file in FILES:
        labelled = list(lines(file))[: options.lines or None]
        right = sum(line.right for line in labelled)
        print(f"{file}: {len(labelled)} lines, {right} right")
        for name, accepts in graders.items():
            found = [(line.right, accepts(line)) for line in labelled]
            refused, accepted = found.count((True, False)), found.count((False, True))
            agreed = 1 - (refused + accepted) / len(found)
            print(
                f"  {name}: agreement {agreed:.3f}, right refused {refused / right:.3f}, "
                f"wrong accepted {accepted / (len(found) - right):.3f}"
            )
    counts = judge.counts
    print(f"{counts.unread} replies without a rank; {counts.same} of {counts.repeated} answers ranked the same twice")


if __name__ == "__main__":
    main()
