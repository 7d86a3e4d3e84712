"""Banks of a task's questions: no question twice within a level."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_adaptive_eval.evaluation import EvalSpec, Settings
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.bank import task_bank


def prompts(bank: ItemBank, level: int, queries: int) -> list[str]:
    return [item.prompt for item in bank.items[(level - 1) * queries : level * queries]]


@pytest.mark.parametrize("name", ["addition", "counting", "decimals", "operations", "unscramble", "writing"])
@pytest.mark.parametrize("seed", [0, 3])
def test_no_question_stands_twice_within_a_level(name: str, seed: int) -> None:
    family = FAMILIES[name]
    bank = task_bank(family, queries=50, levels=4, seed=seed)
    assert "repeated" not in bank.report
    for level in range(1, 5):
        assert max(Counter(prompts(bank, level, 50)).values()) == 1
    assert [item.id for item in bank.items] == list(bank.ids)
    drawn = [family.question(1, seed * 50 + k).prompt for k in range(50)]
    for first, now in zip(drawn, prompts(bank, 1, 50), strict=True):
        assert now == first or drawn.count(first) > 1
    assert name != "decimals" or len(set(drawn)) < 45  # else nothing had to be replaced


def test_banks_of_two_seeds_share_no_item() -> None:
    banks = [task_bank(FAMILIES["addition"], queries=50, levels=2, seed=seed) for seed in range(4)]
    ids = [name for bank in banks for name in bank.ids]
    assert len(set(ids)) == len(ids)
    assert len({bank.content_hash for bank in banks}) == len(banks)


def test_a_task_without_more_questions_tells_how_many_it_repeats(tmp_path: object) -> None:
    family = FAMILIES["addition"]  # 81 sums of two digits
    bank = task_bank(family, queries=100, levels=2)
    repeated = bank.report["repeated"]
    assert repeated == {"1": 100 - len(set(prompts(bank, 1, 100)))}
    assert repeated["1"] >= 19
    spec = EvalSpec({"task": "addition", "queries": 100, "levels": 2}, "here", tmp_path)  # type: ignore[arg-type]
    notes = spec.build(Settings(tmp_path, tmp_path)).notes  # type: ignore[arg-type]
    assert f"{repeated['1']} questions of level 1 repeat others: the task has no more" in notes
