"""Show the pictures of task families, and let a reader answer questions about them without the truth.

``python docs/_build/picture_tasks.py`` makes ``docs/images/tasks.jpg``: one picture of every family at three levels.

``--quiz FOLDER`` writes 20 questions of each family over all its levels: sheets of six pictures, and ``FAMILY.txt``
with the prompts, without answers.  ``--answers FILE`` grades a file with lines such as ``blur 5003 circle``: the
family, the question's seed, and the answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from pytest_adaptive_eval.tasks import FAMILIES, TaskFamily

SHEET = Path(__file__).parents[1] / "images" / "tasks.jpg"
PICTORIAL = [family for family in FAMILIES.values() if family.sized]
#: Pixels of a picture of the sheet, families side by side there, and rows of text.
SIDE, ABREAST, HEAD = 192, 2, 18
#: Questions of each family in a quiz, and pictures of a sheet of a quiz.
QUESTIONS, PICTURES = 20, 6


def three_levels(family: TaskFamily) -> Sequence[int]:
    """Return an easy level, one in the middle, and a hard one."""
    return 1, (family.levels + 1) // 2, family.levels - 1


def make_sheet(path: Path) -> None:
    """Draw one picture of every family at three levels."""
    rows = -(-len(PICTORIAL) // ABREAST)
    sheet = Image.new("RGB", (ABREAST * 3 * (SIDE + 6), rows * (SIDE + HEAD)), "white")
    draw = ImageDraw.Draw(sheet)
    for i, family in enumerate(PICTORIAL):
        for n, level in enumerate(three_levels(family)):
            x, y = (i % ABREAST * 3 + n) * (SIDE + 6), i // ABREAST * (SIDE + HEAD)
            draw.text((x + 4, y + 2), f"{family.name}, level {level}", "black")
            sheet.paste(Image.fromarray(family.picture(level, 1)).resize((SIDE, SIDE)), (x, y + HEAD))
    sheet.save(path, quality=82)


def level_of(family: TaskFamily, seed: int) -> int:
    """Return the level of a question of a quiz, whose questions are spread over the levels."""
    return 1 + seed % QUESTIONS * family.levels // QUESTIONS


def write_quiz(folder: Path, start: int) -> None:
    """Write the pictures and the prompts of all families."""
    folder.mkdir(parents=True, exist_ok=True)
    for family in PICTORIAL:
        prompts = []
        for first in range(0, QUESTIONS, PICTURES):
            sheet = Image.new("RGB", (3 * 460, 2 * (448 + HEAD)), "white")
            for k, seed in enumerate(range(start + first, start + min(first + PICTURES, QUESTIONS))):
                level = level_of(family, seed)
                x, y = k % 3 * 460, k // 3 * (448 + HEAD)
                ImageDraw.Draw(sheet).text((x + 4, y + 2), f"{family.name} {seed}", "black")
                sheet.paste(Image.fromarray(family.picture(level, seed)), (x, y + HEAD))
                prompts.append(f"{family.name} {seed}: {family.question(level, seed).prompt}\n")
            sheet.save(folder / f"{family.name}-{first // PICTURES}.png")
        (folder / f"{family.name}.txt").write_text("\n".join(prompts), encoding="utf-8")


def grade(path: Path) -> None:
    """Print how many answers are right, by family, and which are not."""
    answers: dict[str, dict[int, str]] = {}
    for line in path.read_text("utf-8").splitlines():
        name, seed, answer = line.split(maxsplit=2)
        answers.setdefault(name, {})[int(seed)] = answer
    for name, given in answers.items():
        wrong = []
        for seed, answer in given.items():
            item = FAMILIES[name].item(level_of(FAMILIES[name], seed), seed)
            if item.grade(answer) < 1.0:
                wrong.append(f"{seed} (level {item.meta['level']}): {answer} for {item.answer}")
        errors = "".join(f"\n  {text}" for text in wrong)
        sys.stdout.write(f"{name}: {len(given) - len(wrong)} of {len(given)} right{errors}\n")


def main() -> None:
    """Make the sheet, a quiz or its grades."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiz", type=Path, metavar="FOLDER")
    parser.add_argument("--answers", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=5000, help="seed of the first question of each family")
    options = parser.parse_args()
    if options.quiz:
        write_quiz(options.quiz, options.seed)
    elif options.answers:
        grade(options.answers)
    else:
        make_sheet(SHEET)


if __name__ == "__main__":
    main()
