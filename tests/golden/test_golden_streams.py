"""The same seed asks the same questions, with the same chances, and finds the same, as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_streams
import pytest
from golden_project import RELATIVE, check, stored, text_of

pytestmark = pytest.mark.slow


def check_fits(name: str, now: dict[str, Any], relative: float = RELATIVE) -> None:
    """Compare fits with the stored ones.

    A bank's scale is a hash of its parameters' bits, so that it is compared where they are equal: searches end at other
    last digits on other processors, and with other versions of scipy.
    """
    before = stored(name)
    for fit, files in now.items():
        if "params.npz" in files and files["params.npz"] != before[fit]["params.npz"]:
            files["bank.json"]["scale"] = before[fit]["bank.json"]["scale"]
    check(name, now, relative)


@pytest.mark.parametrize(
    "made", [golden_streams.policies, golden_streams.calibrations], ids=["policies", "calibrations"]
)
def test_two_processes_find_the_same_to_the_last_digit(made: Any, tmp_path: Path, monkeypatch: Any) -> None:
    found = []
    for hash_seed in ("1", "2"):  # the order of sets of texts differs
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
        folder = tmp_path / hash_seed
        folder.mkdir()
        found.append(text_of(made(folder)))
    assert found[0] == found[1]


def test_twenty_seeds_of_the_promotion_example(tmp_path: Path) -> None:
    check("seeds", golden_streams.twenty_seeds(tmp_path))


def test_ladders_of_every_kind_ask_the_same_items(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="families of pictures need pillow (extra hf)")
    check("ladders", golden_streams.ladders(tmp_path))


def test_task_families_set_the_same_questions(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="families of pictures need pillow (extra hf)")
    check("item-texts", golden_streams.item_texts(tmp_path))


def test_networks_and_panels_ask_and_find_the_same(tmp_path: Path) -> None:
    pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    check("studies", golden_streams.studies(tmp_path))


def test_calibration_and_backtest_with_torch_give_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="fits in formats need torch (extra hf)")
    pytest.importorskip("pyro", reason="the engine svi needs pyro (extra pyro)")
    # Forty steps of a gradient carry single precision's last digits on, which differ between processors.
    check_fits("torch-calibrations", golden_streams.torch_calibrations(tmp_path), relative=5e-6)
