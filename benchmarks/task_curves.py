"""Accuracy against level of every task family, for readers of rising strength.

``python -m benchmarks.task_curves [--tasks decimals ...] [--queries 40]``. A reader works each answer out by the
solvers of the tests, from a prompt and a picture that it misreads: a letter or digit of the data becomes another with
the probability of its weakness, and one of 64 tiles of a picture turns grey. Each family has a row for each weakness,
with the accuracy at each level. Such a reader fails more often the more has to be read; what else makes a level hard,
such as the letters to put in order, costs it nothing, so that its rows are level for families whose texts do not grow.
Counted are the levels at which a reader does better than at the level below, and those at which it does better than a
stronger one, by more than two standard errors.
"""

from __future__ import annotations

import argparse
import random
import string
from functools import partial

import numpy as np

from pytest_adaptive_eval.tasks import FAMILIES, Picture, TaskFamily, families
from pytest_adaptive_eval.tasks.distortions import DISTORTIONS
from tests.tasks.picture_solvers import SOLVERS as PICTURE_SOLVERS
from tests.tasks.picture_solvers import undistorted
from tests.tasks.solvers import SOLVERS, InProcess, program, restore, without_form

#: Probabilities that a letter, a digit or a tile is misread, the strongest reader first.
WEAKNESSES = (0.003, 0.01, 0.03, 0.1)
TILES = 8


#: Readers that leave a word as it is where they cannot make sense of it.
READERS = dict.fromkeys(("scrambled", "masked"), partial(restore, tolerant=True))


def misread(prompt: str, weakness: float, rng: random.Random, *, first: bool = False) -> str:
    """Return a prompt with letters and digits of its data changed.

    These are the last paragraph, the first if so told, and all capitals of a prompt of one paragraph.
    """
    if first:
        data, blank, rest = prompt.partition("\n\n")
        return misread(f"{blank}{data}", weakness, rng).removeprefix(blank) + blank + rest
    head, blank, data = prompt.rpartition("\n\n")
    alphabets = (string.ascii_uppercase, string.digits, *([string.ascii_lowercase] if blank else []))
    changed = [next((rng.choice(a) for a in alphabets if c in a), c) if rng.random() < weakness else c for c in data]
    if not blank:  # the first letter begins the sentence
        changed[:1] = data[:1]
    return head + blank + "".join(changed)


def covered(picture: Picture, weakness: float, rng: random.Random) -> Picture:
    """Return a picture with grey tiles."""
    shown = picture.copy()
    height, width = (-(-side // TILES) for side in shown.shape[:2])
    for row in range(TILES):
        for column in range(TILES):
            if rng.random() < weakness:
                shown[row * height : (row + 1) * height, column * width : (column + 1) * width] = 128
    return shown


def answer(family: TaskFamily, level: int, seed: int, weakness: float) -> str:
    """Return the answer of a reader, empty where it cannot make sense of what it read."""
    rng = random.Random(f"{family.name} {level} {seed} {weakness}")
    question = family.question(level, seed)
    prompt = without_form(family, question.prompt)
    try:
        if family.name == "code_repair":
            return program(misread(prompt, weakness, rng), misread(f"\n\n{question.answer}", weakness, rng).lstrip())
        if not family.pictorial:
            seen = misread(prompt, weakness, rng, first=family.name == "comprehension")
            return READERS.get(family.name, SOLVERS[family.name])(seen)
        shown = undistorted(family, level, seed) if family.name in DISTORTIONS else family.picture(level, seed)
        return PICTURE_SOLVERS[family.name](prompt, covered(shown, weakness, rng), level)
    except Exception:  # a solver takes well-formed questions alone
        return ""


def curve(family: TaskFamily, weakness: float, queries: int) -> list[float]:
    """Return the accuracy at each level."""
    return [
        float(
            np.mean([family.item(level, seed).grade(answer(family, level, seed, weakness)) for seed in range(queries)])
        )
        for level in range(1, family.levels + 1)
    ]


def main() -> None:
    """Print the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=list(FAMILIES), help="all by default")
    parser.add_argument("--queries", type=int, default=40, help="questions a level (default %(default)s)")
    arguments = parser.parse_args()
    known = families(runner=InProcess())
    slack = 2 * (0.5 / arguments.queries) ** 0.5
    for name in arguments.tasks:
        family = known[name]
        curves = np.array([curve(family, weakness, arguments.queries) for weakness in WEAKNESSES])
        rising = int((np.diff(curves, axis=1) > slack).sum())
        crossed = int((np.diff(curves, axis=0) > slack).sum())
        print(f"{name}: {rising} levels higher than the one below, {crossed} of a weaker reader above a stronger one")
        for weakness, row in zip(WEAKNESSES, curves, strict=True):
            print(f"  {weakness:5.3f} ", " ".join(f"{accuracy:.2f}".lstrip("0") for accuracy in row))


if __name__ == "__main__":
    main()
