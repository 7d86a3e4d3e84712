"""Right answers of real models that are refused, and wrong ones that are accepted, by kind of question.

    python benchmarks/real_answers.py [--files NAME,...] [--sample N] [--counts FILE]

Reads the published answers of some 150 models in ``ADAPTIVE_EVAL_DATA/answers`` (default ``../shared/data``), grades
each by the grader of its kind, and compares with a mechanical check of lines that state their answer (*explicit*) and
with the publishers' labels (*labelled*, of which some are known to be wrong). Beside today's graders stand those of
before (``real_answers_before.json``, made by ``--counts`` with ``PYTHONPATH`` set to a checkout of commit 2091726),
math-verify alone, and regular expressions of lm-evaluation-harness: `flexible-extract` of its GSM8K for numbers,
`custom-extract` of its MMLU-Pro for letters, and its `take_first` with `exact_match` for the others.

``--sample N`` prints N labelled lines on which grader and label disagree, drawn by a fixed seed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from pytest_adaptive_eval.items.item import Item

ANSWERS = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data")) / "answers"
BEFORE = Path(__file__).with_name("real_answers_before.json")
GRADERS = {"number": "numeric", "choice": "choice", "yesno": "yesno", "expression": "math"}
#: Graders that stood for kinds which had none.
EARLIER = {"yesno": "exact", "math": "exact"}
SHOWN = ("source", "id", "kind", "gold", "choices", "label", "check", "extracted")
Row = dict[str, Any]


class Line(NamedTuple):
    """An answer, the item that it answers, and what is known of it: explicit or labelled, right or wrong."""

    row: Row
    item: Item
    known: dict[str, bool]


def item_of(row: Row) -> Item | None:
    """Return the item of a line, or None if a program or a list stands for its answer."""
    gold, choices = row["gold"], row["choices"]
    if isinstance(gold, list):
        if len(gold) != 1:
            return None
        gold = gold[0]
    if isinstance(choices, dict):  # those of LLMBar are long texts, which the answers call by their names
        choices = list(choices if "LLMBar" in row["benchmark"] else choices.values())
    gold = str(gold)
    if re.fullmatch(r"\([A-Z]\)", gold) and not choices:
        gold = gold[1]
    grader = GRADERS[row["kind"]]
    return Item("line", row["question"] or "?", gold, grader, choices=tuple(choices or ()))


def lines(file: Path) -> Iterator[Line]:
    """Yield the lines of a file that can be graded and compared."""
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            left_out = row.get("weak_label") or row.get("cut") or row["benchmark"] == "MathCoder-simuleq"
            if row["kind"] not in GRADERS or left_out or (item := item_of(row)) is None:
                continue
            known = {}
            label, check = row["label"], row.get("check")
            if check is not None and label in (None, check):
                known["explicit"] = bool(check)
            if label is not None:
                known["labelled"] = bool(label)
            if known:
                yield Line(row, item, known)


def by_item(line: Line) -> bool:
    """Grade as an item of a bank."""
    try:
        return line.item.grade(line.row["answer"]) == 1.0
    except Exception as error:
        if "is not known" not in str(error):
            return False
        return Item("line", "?", line.item.answer, EARLIER[line.item.grader]).grade(line.row["answer"]) == 1.0


_LETTER = re.compile(r"answer is \(?([A-J])\)?")
_NUMBER = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")


def _letter_of(item: Item) -> str:
    return chr(65 + item.choices.index(item.answer)) if item.answer in item.choices else item.answer.strip("()")


def by_filters(line: Line) -> bool:
    """Grade by the usual filters of lm-evaluation-harness."""
    answer, item = line.row["answer"], line.item
    if item.grader == "choice":
        match = _LETTER.search(answer)
        return match is not None and match[1] == _letter_of(item)
    if item.grader == "numeric":
        found = ["".join(match) for match in _NUMBER.findall(answer)]
        plain = [re.sub(r"[,$]|\.$", "", text) for text in (found[-1] if found else "", item.answer)]
        return plain[0] == plain[1]
    return bool(answer.strip() == item.answer)


def by_math_verify() -> Callable[[Line], bool] | None:
    """Return grading by math-verify alone, or None where it is not installed."""
    try:
        import math_verify
    except ImportError:
        return None

    def grade(line: Line) -> bool:
        configs: list[Any] = [math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig()]
        gold, answer = line.item.answer, line.row["answer"]
        if line.item.grader == "choice":
            gold = _letter_of(line.item)
            configs = [math_verify.StringExtractionConfig(strings=tuple("ABCDEFGHIJ"))]
        elif line.item.grader == "math":
            gold = f"${gold}$"
        expected, given = (math_verify.parse(text, configs, parsing_timeout=None) for text in (gold, answer))
        return bool(math_verify.verify(expected, given, timeout_seconds=None))

    return grade


def counted(file: Path, grade: Callable[[Line], bool], wrong: list[Line] | None = None) -> Counter[str]:
    """Return how many lines of each kind are right and wrong, refused and accepted."""
    counts: Counter[str] = Counter()
    for line in lines(file):
        given = grade(line)
        for sort, right in line.known.items():
            key = f"{line.row['kind']} {sort} {'right' if right else 'wrong'}"
            counts[key] += 1
            counts[f"{key} misjudged"] += given != right
            if given != right and sort == "labelled" and wrong is not None:
                wrong.append(line)
    return counts


def shares(counts: Counter[str] | dict[str, int], kind: str, sort: str) -> str:
    """Return the shares of right lines refused and wrong ones accepted, in percent."""
    cells = []
    for side in ("right", "wrong"):
        whole = counts.get(f"{kind} {sort} {side}", 0)
        cells.append(f"{100 * counts.get(f'{kind} {sort} {side} misjudged', 0) / whole:.1f}" if whole else "-")
    return " / ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--counts", type=Path, help="write the counts of the installed graders, and no table")
    options = parser.parse_args()
    files = sorted(ANSWERS.glob("*.jsonl.gz"))
    files = [file for file in files if not options.files or file.name.split(".")[0] in options.files.split(",")]
    wrong: list[Line] = []
    today = {file.name.split(".")[0]: counted(file, by_item, wrong) for file in files}
    if options.counts:
        options.counts.write_text(json.dumps(today, indent=0, sort_keys=True) + "\n", "utf-8")
        return
    if options.sample:
        for number, line in enumerate(random.Random(7).sample(wrong, min(options.sample, len(wrong))), 1):
            row = line.row
            facts = {name: row[name] for name in SHOWN}
            print(f"--- {number} {json.dumps(facts, ensure_ascii=False)[:600]}")
            print(f"{row['answer'][:150]} [...] {row['answer'][-350:]}\n")
        return
    before = json.loads(BEFORE.read_text("utf-8"))
    verify = by_math_verify()
    columns = {
        "today": today,
        "before": before,
        "math-verify": {f.name.split(".")[0]: counted(f, verify) for f in files} if verify else {},
        "lm-eval filters": {file.name.split(".")[0]: counted(file, by_filters) for file in files},
    }
    print("Right answers refused / wrong ones accepted, in percent.\n")
    print(f"| file | kind | sort | right | wrong | {' | '.join(columns)} |\n|{' --- |' * (5 + len(columns))}")
    for name, counts in today.items():
        for kind in GRADERS:
            for sort in ("explicit", "labelled"):
                whole = [counts.get(f"{kind} {sort} {side}", 0) for side in ("right", "wrong")]
                if any(whole):
                    cells = [shares(column.get(name, {}), kind, sort) for column in columns.values()]
                    print(f"| {name} | {kind} | {sort} | {whole[0]} | {whole[1]} | {' | '.join(cells)} |")
    for sort in ("explicit", "labelled"):
        cells, whole = [], [0, 0]
        for column in columns.values():
            total: Counter[str] = Counter()
            for name in today:
                for key, count in column.get(name, {}).items():
                    total[f"all {key.partition(' ')[2]}"] += count
            cells.append(shares(total, "all", sort))
            whole = [total[f"all {sort} {side}"] or was for side, was in zip(("right", "wrong"), whole, strict=True)]
        print(f"| all | | {sort} | {whole[0]} | {whole[1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
