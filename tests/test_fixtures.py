"""The committed fixtures are what they say: unaltered, ordered, and enough to calibrate with."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from fixtures.recipe.plan import TASKS
from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.calibration.build import matched
from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.item import Item

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

Table = dict[str, dict[str, str]]


def table(name: str) -> Table:
    text = gzip.decompress((FIXTURES / "responses" / name).read_bytes()).decode()
    return {row["subject"]: row for row in csv.DictReader(io.StringIO(text))}


def items(kind: str) -> list[Item]:
    return list(read_bank(FIXTURES / "banks" / f"{kind}.items.jsonl").items)


def accuracy(row: dict[str, str], family: str = "", form: str = "") -> float:
    cells = [
        value
        for column, value in row.items()
        if column not in ("subject", "run", "step")
        and column.partition("@")[2] == form
        and column.startswith(f"{family}-" if family else "")
    ]
    return fmean(float(cell or 0) for cell in cells)


@pytest.fixture(scope="module")
def text() -> dict[str, float]:
    return {name: accuracy(row) for name, row in table("released-text.csv.gz").items()}


@pytest.fixture(scope="module")
def vision() -> dict[str, float]:
    return {name: accuracy(row) for name, row in table("released-vision.csv.gz").items()}


def test_every_file_is_the_one_in_the_manifest() -> None:
    manifest = json.loads((FIXTURES / "MANIFEST.json").read_text())
    folders = ("banks", "checkpoints", "responses")
    present = {
        path.relative_to(FIXTURES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in (FIXTURES / folder).rglob("*")
        if path.is_file()
    }
    assert present == manifest


def test_weights_are_small_and_safe() -> None:
    folder = FIXTURES / "checkpoints"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20e6
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".jinja"}
    assert {path.parent.name for path in folder.glob("*/model.safetensors")} - {"interviewer"} == {
        *table("released-text.csv.gz"),
        *table("released-vision.csv.gz"),
        *table("released-cross.csv.gz"),
    }


def test_training_makes_text_checkpoints_better(text: dict[str, float]) -> None:
    assert text["text-early"] + 0.1 < text["text-mid"]
    assert text["text-mid"] + 0.1 < text["text-late"]
    assert 0.70 <= text["text-late"] <= 0.85


def test_a_regression_is_as_large_as_promised(text: dict[str, float], vision: dict[str, float]) -> None:
    assert text["text-late"] - text["text-regressed"] >= 0.25
    assert 0.08 <= text["text-late"] - text["text-regressed-mild"] <= 0.16
    assert vision["vision-late"] - vision["vision-regressed"] >= 0.25
    assert vision["vision-early"] + 0.2 < vision["vision-late"]


def test_only_items_of_one_family_need_picture_and_words() -> None:
    rows = table("released-cross.csv.gz")
    late, spoilt, early = (rows[f"cross-{name}"] for name in ("late", "regressed", "early"))
    assert accuracy(late, "after") > 0.8
    assert max(accuracy(late, "after", form) for form in ("image", "text", "none")) < 0.35
    assert accuracy(early, "after") < 0.45
    assert accuracy(late, "after") - accuracy(spoilt, "after") >= 0.3
    assert abs(accuracy(late, "noise") - accuracy(spoilt, "noise")) <= 0.1


def test_the_regression_on_addition_hurts_nothing_else() -> None:
    rows = table("released-text.csv.gz")
    late, spoilt = rows["text-late"], rows["text-regressed-addition"]
    assert accuracy(late, "addition") - accuracy(spoilt, "addition") >= 0.3
    for family in ("counting", "operations", "post_order", "unscramble"):
        assert abs(accuracy(late, family) - accuracy(spoilt, family)) <= 0.05


@pytest.mark.parametrize(("kind", "count"), [("text", 600), ("vision", 300), ("cross", 250)])
def test_items_are_those_of_the_families(kind: str, count: int) -> None:
    found = items(kind)
    assert len({item.id for item in found}) == len(found) >= count
    for item in found:
        level, seed = int(item.meta["level"]), int(item.meta["seed"])
        made = TASKS[item.category[0]].item(level, seed)
        assert (made.id, made.prompt, made.answer, made.grader) == (item.id, item.prompt, item.answer, item.grader)
        assert item.formats == made.formats
        assert [Path(image).name for image in item.images] == list(made.images)


def test_pictures_are_those_of_the_families() -> None:
    image = pytest.importorskip("PIL.Image")
    for item in [*items("vision"), *items("cross")]:
        picture = TASKS[item.category[0]].picture(int(item.meta["level"]), int(item.meta["seed"]))
        with image.open(FIXTURES / "banks" / item.images[0]) as drawn:
            assert (np.array(drawn) == picture).all()


@pytest.mark.parametrize("kind", ["text", "vision", "cross"])
def test_a_calibration_family_is_large_and_wide(kind: str) -> None:
    rows = table(f"{kind}.csv.gz")
    assert len(rows) >= 40
    assert len({row["run"] for row in rows.values()}) >= 12
    released = table(f"released-{kind}.csv.gz")
    assert not {row["run"] for row in rows.values()} & {row["run"] for row in released.values()}
    accuracies = [accuracy(row) for row in rows.values()]
    assert min(accuracies) < 0.3
    assert max(accuracies) > accuracy(released[f"{kind}-late"]) - 0.1


@pytest.mark.parametrize("name", ["text", "vision", "cross", "released-text", "released-vision", "released-cross"])
def test_responses_cover_the_bank(name: str) -> None:
    kind = name.removeprefix("released-")
    columns = {
        f"{item.id}@{form}" if place else item.id for item in items(kind) for place, form in enumerate(item.formats)
    }
    cells = []
    for row in table(f"{name}.csv.gz").values():
        assert set(row) == columns | {"subject", "run", "step"}
        cells += [row[column] for column in columns]
    assert set(cells) <= {"0", "1", ""}
    assert cells.count("") <= 0.01 * len(cells)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("kind", ["text", "vision", "cross"])
def test_recorded_scores_are_those_of_the_recorded_answers(kind: str) -> None:
    answers, scores = table(f"released-{kind}.answers.csv.gz"), table(f"released-{kind}.csv.gz")
    for item in items(kind):
        for place, form in enumerate(item.formats):
            column = f"{item.id}@{form}" if place else item.id
            for subject, row in answers.items():
                if scores[subject][column]:
                    assert item.grade(row[column]) == float(scores[subject][column])


@pytest.mark.parametrize("kind", ["text", "vision", "cross"])
def test_a_bank_folder_holds_the_items_and_its_subjects(kind: str) -> None:
    bank = read_bank(FIXTURES / "banks" / f"{kind}.bank")
    assert [item.content_hash for item in bank.items] == [item.content_hash for item in items(kind)]
    about = json.loads((FIXTURES / "banks" / f"{kind}.bank" / "bank.json").read_text())
    assert about["subjects"] == list(table(f"{kind}.csv.gz"))


@pytest.mark.parametrize("kind", ["text", "vision", "cross"])
def test_a_bank_is_what_the_recipe_makes_of_the_responses(kind: str) -> None:
    recipe = pytest.importorskip("fixtures.recipe.calibrated", reason="the recipe needs torch (extra hf)")
    bank = read_bank(FIXTURES / "banks" / f"{kind}.bank")
    responses = matched(read_responses(FIXTURES / "responses" / f"{kind}.csv.gz"), list(bank.items), lambda note: None)
    fit = Recipe("2pl")(responses.scores, weights=grouped(responses).weights)
    assert fit.converged
    # on another machine the last digits differ
    np.testing.assert_allclose(fit.discrimination, bank.discrimination, atol=0.01)
    np.testing.assert_allclose(fit.intercept, bank.intercept, atol=0.01)
    assert set(bank.conformal) == {policy.key(bank) for policy in recipe.replayed()}
    assert (bank.in_formats is not None) == (kind in recipe.IN_FORMATS)
    assert bank.in_formats is None or bank.in_formats.report["converged"]
