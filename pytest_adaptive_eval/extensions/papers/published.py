"""Recorded responses of the papers: where they are found, and how subjects are split."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.backtest import Split, splits
from pytest_adaptive_eval.items.responses import Responses

#: Environment variable with the folder of the published responses.
VARIABLE = "ADAPTIVE_EVAL_DATA"
#: Files of AutoJudger (arXiv 2505.21389), items by subjects, by the name of the benchmark.
AUTOJUDGER = {"AI2D": ("autojudger/AI2D_TEST.csv.gz",), "MMMU": ("autojudger/MMMU_DEV_VAL.csv.gz",)}
#: Files of M3-IRT (arXiv 2603.02663): responses in formats to the items, and to their twins of low quality.
M3IRT = {
    "mmmu": ("m3irt/normal_mmmu.csv.gz", "m3irt/shuffled_mmmu.csv.gz"),
    "mathvista": ("m3irt/normal_mathvista.csv.gz", "m3irt/shuffled_mathvista.csv.gz"),
}
#: Numbers of subjects that calibrate and that are interviewed in AutoJudger's paper.
TRAIN, TEST = 60, 17


def published(name: str, known: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:
    """Return the files of a published benchmark in the folder that `VARIABLE` names.

    Raises:
        ConfigError: The variable is not set, or a file is missing.
    """
    wanted = " and ".join(known[name])
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise ConfigError(f"{name}: {VARIABLE} is not set, expected the folder with {wanted}; set it, or name a file")
    paths = tuple(Path(folder) / part for part in known[name])
    for path in paths:
        if not path.is_file():
            raise ConfigError(f"{name}: {VARIABLE} is {folder}, which lacks {path}; expected {wanted}, or name a file")
    return paths


@dataclass(frozen=True, slots=True)
class PaperSplit:
    """Names of the subjects that calibrate and that are interviewed, as files beside the responses list them."""

    train: tuple[str, ...]
    test: tuple[str, ...]

    @classmethod
    def beside(cls, path: Path) -> PaperSplit | None:
        """Return the split of ``train_models.json`` and ``test_models.json`` in a file's folder; None without them."""
        sides = [path.parent / f"{side}_models.json" for side in ("train", "test")]
        if not all(side.is_file() for side in sides):
            return None
        return cls(*(_names(side) for side in sides))

    def of(self, responses: Responses) -> Split:
        """Return the places of the subjects.

        Raises:
            ConfigError: A subject is not in the responses.
        """
        place = {name: s for s, name in enumerate(responses.subjects)}
        if absent := [name for name in (*self.train, *self.test) if name not in place]:
            raise ConfigError(
                f"{responses.source}: lacks {len(absent)} subjects of the paper's split, such as {absent[0]!r}; "
                "give --splits N for random splits"
            )
        return Split(*(np.array([place[name] for name in side]) for side in (self.train, self.test)))

    def pool(self, responses: Responses) -> Responses:
        """Return the responses of the subjects of both sides."""
        kept = {*self.train, *self.test}
        return responses.of([s for s, name in enumerate(responses.subjects) if name in kept])


def _names(path: Path) -> tuple[str, ...]:
    names = json.loads(path.read_text("utf-8"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{path}: expected a list of names of subjects; leave the file out, or correct it")
    return tuple(names)


def random_split(responses: Responses, seed: int) -> Split:
    """Return a random split with families on one side, in the proportion of `TRAIN` and `TEST`."""
    count = len(responses.subjects)
    test = max(2, round(count * TEST / (TRAIN + TEST)))
    return draw(responses, seed, count - test, test)


def draw(responses: Responses, seed: int, train: int, test: int) -> Split:
    """Return a random split with at most so many subjects on each side."""
    rng = np.random.default_rng(seed)
    found = next(splits(responses, 1, test=test, seed=seed))
    return Split(np.sort(rng.permutation(found.train)[:train]), found.test)
