"""Forms of papers beside uniform draws: item-total correlation (metabench) and evolutionary search (FlashEval).

``python benchmarks/compact_forms.py RESPONSES.csv.gz --splits N --budget 1%,5%,10%,20%`` calibrates on four fifths of
the families, as ``adaptive-eval backtest`` does, and prints ranking accuracy and mean error of the mean scores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.calibration.build import matched
from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import FixedForm
from pytest_adaptive_eval.extensions.backtests.backtest import backtest, splits
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS, Contender
from pytest_adaptive_eval.extensions.papers.subsets import evolved, item_total
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array


def item_total_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    """The items whose scores go with the total."""
    del embeddings, seed
    order = tie_ranks(-item_total(train)).argsort(kind="stable")
    return Policy(FixedForm(tuple(order[:count].tolist())), 0.0)


def evolved_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    """The items that rank the calibration subjects best, by evolutionary search."""
    del embeddings
    return Policy(FixedForm(tuple(evolved(train, count, np.random.default_rng(seed)).tolist())), 0.0)


FORMS = (
    Contender("item-total", "none", item_total_form, "mean", "items that go with the total"),
    Contender("flasheval", "none", evolved_form, "mean", "evolutionary search (FlashEval)"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("responses", type=Path)
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--budget", default="1%,5%,10%,20%")
    options = parser.parse_args()
    responses = grouped(matched(read_responses(options.responses), None, print))
    contenders = [CONTENDERS["random"], *FORMS]
    budgets = options.budget.split(",")
    test = max(2, round(len(responses.subjects) / 5))
    total = None
    for seed, split in enumerate(splits(responses, options.splits, test=test, seed=0)):
        part = backtest(responses, split, contenders, budgets, recipe=Recipe(), seed=seed)
        if total is None:
            total = part
        else:
            total.merge(part)
    assert total is not None
    for (name, budget), cell in total.cells.items():
        print(f"{name:12} {budget:>4} ranking {np.mean(cell.ranking):.1f} error {np.mean(cell.error):.3f}")


if __name__ == "__main__":
    main()
