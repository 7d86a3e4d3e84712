"""The verbs about banks: what they refuse, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.calibration.engines.variational import _State
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.item import Item

SUBJECTS, ITEMS = 12, 16
FORMATS = ("image+text", "image", "text")


@pytest.fixture
def matrix() -> Path:
    """Responses by which items and subjects can be told apart."""
    rng = np.random.default_rng(1)
    p = 1 / (1 + np.exp(-1.5 * (rng.normal(size=(SUBJECTS, 1)) - rng.normal(size=ITEMS))))
    rows = [["subject", *(f"q{i}" for i in range(ITEMS))]]
    rows += [[f"m{s}", *map(str, row)] for s, row in enumerate((rng.random(p.shape) < p).astype(int).tolist())]
    return written("r.csv", rows)


def written(path: str, rows: list[list[str]]) -> Path:
    Path(path).write_text("".join(",".join(row) + "\n" for row in rows))
    return Path(path)


def tidy(path: str = "f.csv") -> Path:
    """Responses in formats."""
    rng = np.random.default_rng(2)
    rows = [
        [f"m{s}", f"q{i}", form, str(int(rng.random() < (0.2 + 0.6 * s / SUBJECTS)))]
        for s in range(SUBJECTS)
        for i in range(ITEMS)
        for form in FORMATS
    ]
    return written(path, [["subject", "item", "format", "score"], *rows])


def bank(path: str = "q.bank", *, calibrated: bool = True) -> Path:
    """Sixteen items, with parameters or without."""
    if not calibrated:
        texts = [json.dumps({"id": f"q{i}", "prompt": "?", "answer": "x"}) for i in range(ITEMS)]
        Path(path).write_text("\n".join(texts) + "\n")
        return Path(path)
    items = [Item(id=f"q{i}", prompt="?", answer="x") for i in range(ITEMS)]
    write_bank(path, items, discrimination=np.ones(ITEMS), intercept=np.linspace(-1, 1, ITEMS))
    return Path(path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_nothing_but_a_bank_is_replaced(command, matrix, monkeypatch, kind):
    monkeypatch.setattr(Recipe, "__call__", lambda *_: pytest.fail("fitted"))
    mine = Path("mine.bank")
    if kind == "folder":
        mine.mkdir()
    kept = mine / "thesis.tex" if kind == "folder" else mine
    kept.write_text("mine")
    code, _, err = command("calibrate", matrix, "-o", "mine.bank", "--replace", "--force")
    assert code == 4
    assert "-o mine.bank exists and is not a bank folder: choose another name" in err
    assert kept.read_text() == "mine"


def test_an_interrupted_fit_takes_no_place_by_force_either(command, matrix, monkeypatch):
    before = (bank() / "bank.json").read_bytes()
    step, calls = _State.step, []

    def stop(self, **given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, **given)

    monkeypatch.setattr(_State, "step", stop)
    code, out, _ = command(
        "calibrate", matrix, "-o", "q.bank", "--replace", "--force", "--policy", "none", "--model", "2pl"
    )
    assert code == 2
    assert "nothing was written: an interrupted fit does not take the place of q.bank" in out
    assert (Path("q.bank") / "bank.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--margin", "0.5"], "--margin 0.5: no accuracy lies so far from the threshold .500"),
        (["--margin", "0.51"], "--margin 0.51: no accuracy lies so far from the threshold .500"),
        (["--margin", "0.6", "--at-least", "0.45"], "from the threshold .450: give a smaller margin, or another"),
    ],
)
def test_a_margin_that_leaves_no_room(command, arguments, message):
    code, out, err = command("plan", bank("q.jsonl", calibrated=False), *arguments)
    assert (code, out) == (4, "")
    assert message in err
    assert command("plan", "q.jsonl", "--margin", "0.51", "--at-least", "0.3")[0] == 0  # room on one side


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["backtest", "f.csv", "--set", "filter=a"], "filter = a is not for responses in formats"),
        (["backtest", "f.csv", "--set", "metric=acc"], "metric = acc is not for responses in formats"),
        (["backtest", "r.csv", "--set", "repeats=9"], "adaptive-eval backtest --set repeats is gone: responses in"),
        (["backtest", "r.csv", "--low-quality=f.csv"], "adaptive-eval backtest --low-quality is gone: backtest the"),
        (["backtest", "q.bank", "--responses", "r.csv"], "adaptive-eval backtest --responses is gone: backtest the"),
        (
            ["calibrate", "r.csv", "--parameters", "p.jsonl", "--model", "mirt", "--set", "dimensions=4"],
            "--model is for a fit, and --parameters replaces the fit; leave it out",
        ),
        (["calibrate", "r.csv", "--parameters", "p.jsonl", "--set", "limit=5"], "limit = 5 is for a fit"),
        (
            ["calibrate", "f.csv", "--formats", "m2", "--set", "format=csv"],
            "format = csv is not for responses in formats",
        ),
        (
            ["calibrate", "f.csv", "--formats", "m2", "--set", "metric=acc"],
            "metric = acc is not for responses in formats",
        ),
        (
            ["calibrate", "f.csv", "--formats", "m2", "--set", "orientation=items-by-subjects"],
            "orientation = items-by-subjects is not for responses in formats",
        ),
        (["calibrate", "f.csv", "--formats", "m2", "--set", "filter=a"], "--filter a: the bank of recorded runs"),
        (["calibrate", "f.csv", "--formats", "m2", "--set", "families=no.csv"], "no.csv: cannot be read"),
        (["calibrate", "f.csv"], "these are responses in formats: calibrate with --formats m2 or m3"),
        (["backtest", "same.csv", "--json", "same.csv"], "--json same.csv is a file that is read, and would be"),
        (["backtest", "r.csv", "--items", "q.svg", "--json", "q.svg"], "--json q.svg is a file that is read"),
        (["backtest", "f.csv", "--json", "f.csv"], "--json f.csv is a file that is read"),
        (["bank", "refine", "f.csv", "--reasons", "./f.csv"], "--reasons f.csv is a file that is read"),
        (
            ["bank", "refine", "r.csv", "--low-quality", "f.csv", "--reasons", "l.csv"],
            "--reasons l.csv is a file that is read",
        ),
    ],
)
def test_what_does_not_apply_and_what_is_read_are_told(command, matrix, arguments, message):
    if "--formats" in arguments or "filter=a" in arguments:
        pytest.importorskip("torch", reason="fits of M2 and M3 need torch (extra hf)")
    tidy()
    Path("l.csv").symlink_to("f.csv")
    bank()
    bank("q.jsonl", calibrated=False)
    for name, text in (("same.csv", matrix.read_text()), ("p.jsonl", ""), ("q.svg", "")):
        Path(name).write_text(text)
    before = {path: path.read_bytes() for path in Path().glob("*.*") if path.is_file()}
    code, out, err = command(*arguments)
    assert (code, out) == (4, "")
    assert message in err
    assert {path: path.read_bytes() for path in before} == before


def test_a_backtest_tells_how_much_of_the_truth_is_there(command, matrix):
    few = ("--model", "2pl", "--splits", "1", "--jobs", "1", "--budget", "4", "--policy", "random")
    assert command("backtest", matrix, *few)[2] == ""
    lines = [line.split(",") for line in matrix.read_text().splitlines()]
    for s, row in enumerate(lines[1:]):
        row[1 + s % 8 :: 8] = ["", ""]
    code, _, err = command("backtest", written("s.csv", lines), *few)
    assert code == 0
    assert "87.5 % of the scores are there: the accuracy of a subject over all items" in err


@pytest.mark.slow
def test_families_and_a_limit_of_a_fit_in_formats(command, monkeypatch):
    pytest.importorskip("torch", reason="fits of M2 and M3 need torch (extra hf)")
    from functools import partial

    from pytest_adaptive_eval.calibration import scale
    from pytest_adaptive_eval.calibration.multimodal import fit_multimodal

    written("fam.csv", [["subject", "family"], *([f"m{s}", f"run-{s % 2}"] for s in range(SUBJECTS))])
    monkeypatch.setattr(scale, "fit_multimodal", partial(fit_multimodal, bounds=(4.0,)))
    given = (
        "calibrate",
        tidy(),
        "--formats",
        "m2",
        "--set",
        "families=fam.csv",
        "--set",
        "limit=40",
        "--budget",
        "4",
        "--policy",
        "estimate",
    )
    code, out, err = command(*given, "-o", "f.bank", "--force")
    assert code == 1
    assert "and these are of 2; gates use design-based intervals" in err
    assert "REFUSED: the fit in formats did not converge: raise limit" in out.replace("\n  ", " ")
    assert read_bank("f.bank").report["trusted"] is False
    code, out, _ = command(*given, "-o", "g.bank")
    assert code == 1
    assert not Path("g.bank").exists()
