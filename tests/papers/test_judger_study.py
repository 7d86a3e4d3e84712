"""Measures of AutoJudger's experiments: errors by category, sides of a split, and the package alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import FixedForm
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.papers.judger import ABSENT, ROWS, Banks, profile_errors, ratings
from pytest_adaptive_eval.extensions.papers.published import PaperSplit, random_split
from pytest_adaptive_eval.items.responses import Responses

ROOT = Path(__file__).parents[2]
N = 60
CATEGORIES = [f"c{i % 2}" for i in range(N)]


def simulated(deviation: float, subjects: int = 30) -> np.ndarray:
    """Scores of subjects who are better in category c0 and worse in c1, by a deviation in logits."""
    rng = np.random.default_rng(11)
    ability = rng.normal(size=(subjects, 1)) + deviation * np.where(np.arange(N) % 2, -1.0, 1.0)
    return (rng.random((subjects, N)) < 1.0 / (1.0 + np.exp(rng.normal(size=N) - ability))).astype(float)


def asked(banks: Banks, scores: np.ndarray, count: int):
    return replay(banks["none"], Policy(FixedForm(tuple(range(count))), 0.0, budget=count), scores, seed=0)


def test_the_whole_bank_has_no_error_by_category():
    scores = simulated(0.0)
    banks = Banks([f"q{i}" for i in range(N)], scores[:20], CATEGORIES)
    assert profile_errors(banks, asked(banks, scores[20:], N), scores[20:]) == pytest.approx([0.0, 0.0])


def test_abilities_by_category_err_less_where_categories_differ():
    scores = simulated(1.5)
    # the bank is calibrated on subjects without deviations
    banks = Banks([f"q{i}" for i in range(N)], simulated(0.0), CATEGORIES)
    profile, whole = profile_errors(banks, asked(banks, scores, 30), scores)
    assert profile < 0.7 * whole


def test_missing_answers_count_in_no_category():
    scores = simulated(0.0)
    holes = scores[20:].copy()
    holes[:, 30:] = np.nan
    banks = Banks([f"q{i}" for i in range(N)], scores[:20], CATEGORIES)
    assert profile_errors(banks, asked(banks, holes, 30), holes) == pytest.approx([0.0, 0.0])


def test_a_missing_answer_is_predicted_in_a_projection():
    scores = simulated(0.0)
    holes = scores[20:].copy()
    holes[0, 0] = np.nan
    banks = Banks([f"q{i}" for i in range(N)], scores[:20])
    row = ROWS["projected"]
    policy = Policy(FixedForm(tuple(range(N))), 0.0, budget=20)
    session = replay(banks["1pl"], policy, holes, seed=0)
    rated = ratings(session, row, 20)
    p = session.bank.probability(session.trace[:, 19])
    assert rated[0] == pytest.approx((p[0, 0] + holes[0, 1:20].sum() + p[0, 20:].sum()) / N)


def test_the_proportion_of_a_random_split_is_the_papers():
    names = tuple(f"m{s}" for s in range(77))
    responses = Responses(names, tuple(f"q{i}" for i in range(N)), simulated(0.0, 77))
    split = random_split(responses, 4)
    assert (len(split.train), len(split.test)) == (60, 17)
    assert sorted([*split.train, *split.test]) == list(range(77))


def test_a_subject_of_the_papers_split_that_is_missing_is_named():
    responses = Responses(("a", "b"), ("q0", "q1"), np.zeros((2, 2)))
    with pytest.raises(ConfigError, match=r"lacks 1 subjects of the paper's split, such as 'c'; give --splits"):
        PaperSplit(("a", "c"), ("b",)).of(responses)


def test_lists_of_subjects_are_checked(tmp_path):
    (tmp_path / "train_models.json").write_text(json.dumps({"models": []}))
    (tmp_path / "test_models.json").write_text(json.dumps(["a"]))
    with pytest.raises(ConfigError, match=r"train_models.json: expected a list of names of subjects"):
        PaperSplit.beside(tmp_path / "r.csv")
    assert PaperSplit.beside(tmp_path / "elsewhere" / "r.csv") is None


def test_rows_have_a_meaning_and_no_row_is_said_to_be_absent():
    assert not set(ROWS) & set(ABSENT)
    assert all(row.contender.summary for row in ROWS.values())
    assert all(len(row.published) <= 4 for row in ROWS.values())


@pytest.mark.slow
def test_studies_need_nothing_but_the_package(tmp_path):
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "pytest_adaptive_eval", tmp_path / "package" / "pytest_adaptive_eval", ignore=unwanted)
    place = tmp_path / "empty"
    place.mkdir()
    source = ROOT / "fixtures" / "responses" / "text.csv.gz"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "package"), "OMP_NUM_THREADS": "1"}
    arguments = ["study", "autojudger", str(source), "--splits", "1", "--only", "random,autojudger"]
    command = [sys.executable, "-P", "-m", "pytest_adaptive_eval", *arguments]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "text: ranking accuracy" in done.stdout
    assert list(place.iterdir()) == []
