"""Planted responses, and the published matrices where they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.items.responses import Responses

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "autojudger"
FILES = {"AI2D": "AI2D_TEST", "MMMU": "MMMU_DEV_VAL"}


class Planted:
    """Responses of subjects to items of known parameters."""

    def __init__(self, subjects, items, seed, slope=1.5, families=()):
        rng = np.random.default_rng(seed)
        self.theta = rng.normal(size=subjects)
        self.b = rng.normal(size=items)
        self.p = 1.0 / (1.0 + np.exp(-slope * (self.theta[:, None] - self.b)))
        scores = (rng.random(self.p.shape) < self.p).astype(float)
        self.responses = Responses(
            tuple(f"m{s}" for s in range(subjects)),
            tuple(f"q{i}" for i in range(items)),
            scores,
            families,
            "planted",
        )
        self.scores = self.responses.scores


@pytest.fixture(scope="session")
def planted():
    """Make planted responses."""
    return Planted


@pytest.fixture(scope="session", params=list(FILES))
def published(request):
    """A public matrix: responses, calibration subjects, test subjects, and the file of released difficulties."""
    from pytest_adaptive_eval.banks.responses import read_responses

    path = DATA / f"{FILES[request.param]}.csv.gz"
    if not path.is_file():
        pytest.skip(f"the public response matrices are not there: {path} (ADAPTIVE_EVAL_DATA names their folder)")
    responses = read_responses(path, orientation="items-by-subjects")
    place = {name: s for s, name in enumerate(responses.subjects)}
    train, test = (
        np.array([place[name] for name in json.loads((DATA / f"{which}_models.json").read_text())])
        for which in ("train", "test")
    )
    return request.param, responses, train, test, DATA / f"{FILES[request.param]}_released_difficulty.jsonl.gz"
