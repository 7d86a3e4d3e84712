"""Answers that people wrote freely and labelled before any was graded: right ones refused, wrong ones accepted.

``python benchmarks/free_answers.py`` grades the 4824 answers of ``free_answers.jsonl`` by the graders that their
questions name. They were written in eleven languages without a look at the code, half of them wrong and as hard to
tell from right ones as their writers could make them. Answers of the sets ``first`` and ``second`` were read
afterwards, to mend kinds of answers that were misread. Those of the set ``unread`` were not, so their figures tell what
new answers may expect.

``--show`` prints the misread answers of the sets that were read, ``--by language`` or ``--by writer`` splits the table.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.items.item import Item

ANSWERS = Path(__file__).with_suffix(".jsonl")
SETS = ("first", "second", "unread")


def answers(sets: list[str], graders: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the labelled answers of some sets and graders."""
    for line in ANSWERS.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["set"] in sets and (not graders or row["grader"] in graders):
            yield row


def is_accepted(row: Mapping[str, Any]) -> bool:
    """Return whether the item's grader gives an answer the full score."""
    item = Item("i", row["question"], row["key"], row["grader"], choices=tuple(row["choices"] or ()))
    return item.grade(row["answer"]) == 1.0


def rate(misread: int, count: int) -> str:
    """Return a share in percent, with its count."""
    if not count:
        return f"{'-':>6} {'':11}"
    return f"{100 * misread / count:5.1f} % of {count:4d}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--graders", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--by", choices=("grader", "language", "writer"), default="grader")
    parser.add_argument("--show", action="store_true", help="print the misread answers, but those of the set unread")
    options = parser.parse_args()
    counts: dict[tuple[str, str], Counter[tuple[bool, bool]]] = defaultdict(Counter)
    for row in answers(options.sets, options.graders):
        accepted = is_accepted(row)
        for name in (row[options.by], "all"):
            counts[row["set"], name][row["right"], accepted] += 1
        if options.show and row["set"] != "unread" and accepted != row["right"]:
            print(f"{'refused' if row['right'] else 'accepted'} by {row['grader']}, key {row['key']!r}: {row['why']}")
            print(f"    {row['question']!r}\n    {row['answer']!r}")
    print(f"{'set':8} {options.by:10} {'right ones refused':>20} {'wrong ones accepted':>20}")
    for (group, name), found in sorted(counts.items()):
        right = found[True, True] + found[True, False]
        wrong = found[False, True] + found[False, False]
        print(f"{group:8} {name:10} {rate(found[True, False], right):>20} {rate(found[False, True], wrong):>20}")


if __name__ == "__main__":
    main()
