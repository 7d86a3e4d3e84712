"""Banks of a task's questions: no question twice within a level."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation import EvalSpec, Settings
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.bank import asked_without, task_bank


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


def test_a_task_on_pictures_is_asked_without_its_picture_or_without_its_words(tmp_path: Path) -> None:
    family = FAMILIES["caption"].at_pixels(48)
    bank = asked_without(
        task_bank(family, queries=3, levels=2, pictures=tmp_path), family, ["image+text", "text", "image"]
    )
    assert len(bank) == 18
    both, text, image = bank.items[:3]
    assert [item.id for item in (text, image)] == [f"{both.id}@text", f"{both.id}@image"]
    assert (bool(both.prompt), bool(both.images)) == (True, True)
    assert (bool(text.prompt), bool(text.images)) == (True, False)
    assert (bool(image.prompt), bool(image.images)) == (False, True)
    assert [family.grade(item, both.answer) for item in (both, text, image)] == [1.0, 1.0, 1.0]
    with pytest.raises(ConfigError, match="the task 'addition' has none"):
        asked_without(task_bank(FAMILIES["addition"], queries=2, levels=2), FAMILIES["addition"], "all")
