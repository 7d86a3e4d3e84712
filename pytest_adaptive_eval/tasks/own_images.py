"""Task family over a user's labelled pictures, which are distorted more with every level."""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.models.images import image_hash, image_size, open_image
from pytest_adaptive_eval.tasks.distortions import DISTORTIONS, LEVELS
from pytest_adaptive_eval.tasks.family import Picture, Question, TaskFamily
from pytest_adaptive_eval.tasks.scenes import choice_question, sized_family
from pytest_adaptive_eval.typed_tables import find_named

#: File with the labels of a folder's pictures, in columns `file` and `label`.
LABELS = "labels.csv"
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
LONGEST_LABEL = 60
#: Options of a question, if there are as many labels.
_OPTIONS = 10


@dataclass(frozen=True, slots=True)
class LabelledImage:
    """Picture of a user.

    Args:
        path: Relative to `root`.
    """

    path: str
    root: str
    label: str
    digest: str


def read_images(folder: str | Path) -> tuple[LabelledImage, ...]:
    """Return the labelled PNG, JPEG and WEBP pictures of a folder, sorted by path.

    The labels are in the folder's `LABELS`, a table with the columns ``file`` and ``label`` and a row for each
    picture. Without that file each picture lies in a subfolder that is named after its label.

    Raises:
        ConfigError: Fewer than two labels have pictures; one has no label or two, is outside the folder, a
            symbolic link or no picture; or the table is malformed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder of pictures: name one that exists")
    table = folder / LABELS
    labels = dict(_tabled(table)) if os.path.lexists(table) else dict(_in_subfolders(folder))
    images = []
    for path, label in sorted(labels.items()):
        if not label.strip() or len(label) > LONGEST_LABEL or not label.isprintable():
            raise ConfigError(
                f"{folder}: the picture {path!r} has the label {label!r:.80}: 1 to {LONGEST_LABEL} characters in one "
                "line are expected"
            )
        try:
            image_size(path, str(folder))
            images.append(LabelledImage(path, str(folder), label, image_hash(path, str(folder))))
        except BankError as error:
            raise ConfigError(f"{folder}: {error}") from None
    _check_images(images, folder)
    return tuple(images)


def _pictures(folder: Path) -> Iterator[str]:
    """Yield the paths of all pictures below a folder, relative to it; names that begin with a dot are left out."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if Path(parent, name).is_symlink():
                raise ConfigError(
                    f"{folder}: the folder {name!r} is a symbolic link: put the pictures themselves there, or remove it"
                )
        for name in files:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(parent, name).relative_to(folder).as_posix()


def _in_subfolders(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and label of pictures in subfolders."""
    for path in _pictures(folder):
        label, _, name = path.partition("/")
        if not name:
            raise ConfigError(
                f"{folder}: the picture {path!r} has no label: put it into a subfolder named after its label, or write "
                f"{LABELS} with the columns file and label"
            )
        yield path, label


def _tabled(table: Path) -> Iterator[tuple[str, str]]:
    """Yield path and label of pictures; a table must name each once."""
    if table.is_symlink():
        raise ConfigError(f"{table} is a symbolic link: put the table itself there")
    try:
        with open_text(table) as file:
            rows = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{table} cannot be read as a table in UTF-8: {error}; write it again") from None
    if not rows or [name.strip() for name in rows[0]] != ["file", "label"]:
        raise ConfigError(f"{table}:1: the first row is {','.join(rows[0] if rows else [])!r:.80}, expected file,label")
    named: set[str] = set()
    for number, row in enumerate(rows[1:], 2):
        if len(row) != 2 or row[0] in named:
            fault = f"{row[0]!r:.80} has a row already" if len(row) == 2 else f"the row has {len(row)} columns"
            raise ConfigError(f"{table}:{number}: {fault}, expected a file that is named once, and its label")
        named.add(row[0])
        yield row[0], row[1].strip()
    if unnamed := sorted(set(_pictures(table.parent)) - named):
        raise ConfigError(f"{table}: it has no row for the picture {unnamed[0]!r}: add one, or remove the picture")


def _check_images(images: Sequence[LabelledImage], folder: Path) -> None:
    """Refuse pictures of one label, labels that differ in case alone, and one picture with two labels."""
    labels: dict[str, str] = {}
    for image in images:
        other = labels.setdefault(image.label.casefold(), image.label)
        if other != image.label:
            raise ConfigError(
                f"{folder}: the labels {other!r} and {image.label!r} differ in case alone: write one of them"
            )
    if len(labels) < 2:
        content = f"one label, {images[0].label!r}" if images else "no pictures"
        raise ConfigError(f"{folder} has {content}: pictures of at least two labels are expected, as PNG, JPEG or WEBP")
    by_digest: dict[str, LabelledImage] = {}
    for image in images:
        twin = by_digest.setdefault(image.digest, image)
        if twin.label != image.label:
            raise ConfigError(
                f"{folder}: {twin.path!r} and {image.path!r} are the same picture with the labels {twin.label!r} and "
                f"{image.label!r}: remove one"
            )


def _resized(image: LabelledImage, pixels: int) -> Picture:
    """Return a picture in colour whose longer side has so many pixels."""
    decoded = open_image(image.path, image.root)
    longer = max(decoded.size)
    width, height = (max(1, side * pixels // longer) for side in decoded.size)
    return np.asarray(decoded.resize((width, height)), dtype=np.uint8)


def own_images(
    images: Sequence[LabelledImage],
    name: str = "own_images",
    *,
    distortion: str | None = None,
    question: str = "Which of these does the picture show?",
) -> TaskFamily:
    """Return a family that shows a user's pictures, distorted from level 2 on, and asks for the label.

    Up to ten labels are the options of a question. All labels are drawn equally often.

    Args:
        images: See `read_images`.
        distortion: A name in `pytest_adaptive_eval.tasks.distortions.DISTORTIONS`; drawn for each question when
            omitted.

    Raises:
        ConfigError: The distortion is unknown, or fewer than two labels have pictures.
    """
    by_label: dict[str, list[LabelledImage]] = {}
    for image in images:
        by_label.setdefault(image.label, []).append(image)
    if len(by_label) < 2:
        raise ConfigError(
            f"{name}: pictures of at least two labels are expected, found {len(by_label)}: see read_images"
        )
    if distortion is not None:
        find_named("distortion", distortion, DISTORTIONS)
    kinds = list(DISTORTIONS) if distortion is None else [distortion]
    labels = sorted(by_label)

    def draw(rng: random.Random, level: int, pixels: int) -> Question:
        answer = rng.choice(labels)
        image, kind, seed = rng.choice(by_label[answer]), rng.choice(kinds), rng.getrandbits(64)
        others = rng.sample([label for label in labels if label != answer], min(len(labels), _OPTIONS) - 1)

        def render() -> Picture:
            return DISTORTIONS[kind](random.Random(seed), _resized(image, pixels), level)

        prompt = f"{question} It may be damaged." if level > 1 else question
        return choice_question(rng, prompt, answer, [answer, *others], render, material=image.digest[:16])

    knob = "strength of the distortion, none at level 1" if distortion is None else DISTORTIONS[distortion].knob
    return sized_family(name, knob, LEVELS, 1 / min(len(labels), _OPTIONS), draw, "choice")
