"""``adaptive-eval bank refine``: files, output, exit codes, mistakes."""

from __future__ import annotations

import csv
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="multimodal fits need torch (extra hf)")

import pytest_adaptive_eval.extensions.backtests.refine as refining  # noqa: E402
from pytest_adaptive_eval.banks import read_bank  # noqa: E402
from pytest_adaptive_eval.banks.writer import write_items  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal import Training, fit_multimodal  # noqa: E402
from pytest_adaptive_eval.errors import BankError  # noqa: E402

FORMATS = ("image+text", "image", "text", "none")
LEVEL = {"q": (0.8, 0.15, 0.2, 0.1), "t": (0.6, 0.15, 0.65, 0.15), "bad": (0.2, 0.25, 0.2, 0.25)}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = partial(fit_multimodal, training=Training(steps=150, patience=2), bounds=(4.0,))
    monkeypatch.setattr(refining, "fit_multimodal", quick)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(before)


def responses(path, names, subjects=20, seed=0):
    """A tidy table; an item's kind is the letters that its name begins with."""
    rng = np.random.default_rng([7, seed])  # not the numbers that say what a fit holds out
    rows = ["subject,item,format,score"]
    for s in range(subjects):
        for name in names:
            for form, level in zip(FORMATS, LEVEL[name.partition("-")[0]], strict=True):
                right = rng.random() < level + (0.3 * (s / subjects - 0.5) if form == "image+text" else 0.0)
                rows.append(f"m{s},{name},{form},{int(right)}")
    Path(path).write_text("\n".join(rows) + "\n")
    return path


ORIGINALS = [f"q-{n}" for n in range(40)] + [f"t-{n}" for n in range(25)]
BAD = [f"bad-{n}" for n in range(40)]


def texts(path, names=(*ORIGINALS, *BAD)):
    """Texts with an image each; those of bad ones are marked."""
    Path("i").mkdir(exist_ok=True)
    rows = []
    for name in names:
        Path(f"i/{name}.png").write_bytes(name.encode())
        row = {"id": name, "prompt": f"{name}?", "answer": name, "images": [f"i/{name}.png"], "formats": list(FORMATS)}
        rows.append(row | ({"meta": {"low_quality": "all"}} if name.startswith("bad") else {}))
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_a_subset_is_written_with_reasons(run):
    responses("r.csv", [*ORIGINALS, *BAD])
    code, out, err = run(
        "bank", "refine", "r.csv", "--items", texts("i.jsonl"), "-o", "new/compact.jsonl", "--reasons", "why.csv"
    )
    assert (code, err) == (0, "")
    bank = read_bank("new/compact.jsonl")
    assert len(bank) > 25
    assert sum(name.startswith("q") for name in bank.ids) > 35
    assert sum(name.startswith("t") for name in bank.ids) < 8
    assert not any(name.startswith("bad") for name in bank.ids)
    assert Path(bank.items[0].image_paths[0]).read_bytes() == bank.ids[0].encode()
    assert not Path("new/i/bad-1.png").exists()
    with Path("why.csv").open(newline="") as file:
        rows = {row["item"]: row for row in csv.DictReader(file)}
    assert set(rows) == {*ORIGINALS, *BAD}
    assert {name for name, row in rows.items() if row["kept"] == "True"} == set(bank.ids)
    assert {rows[name]["reason"] for name in BAD} == {"low quality"}
    assert "does as well: gain" in next(row["detail"] for row in rows.values() if row["reason"] == "shortcut")
    assert f"wrote new/compact.jsonl: {len(bank)} items" in out
    assert "of 40 items known to be of low quality" in out
    assert "format: Spearman ." in out.replace("full format", "format")
    assert "Mann-Whitney U" in out


def test_low_quality_by_a_file_of_their_own_a_size_and_json(run):
    responses("r.csv", ORIGINALS)
    responses("s.csv", BAD, seed=1)
    code, out, err = run(
        "bank", "refine", "r.csv", "--low-quality", "s.csv", "--size", "20%", "--reasons", "why.json", "--form", "m3"
    )
    assert (code, err) == (0, "")
    told = json.loads(Path("why.json").read_text())
    assert told["form"] == "m3"
    assert told["counts"]["kept"] == 13
    assert told["counts"]["low quality"] == 40
    assert told["counts"]["redundant"] > 5
    assert "105 items, M3 with q 4" in out


@pytest.mark.slow
def test_a_bank_of_shortcuts_is_warned_of(run):
    code, out, _ = run("bank", "refine", responses("r.csv", [*ORIGINALS[:20], *(f"t-{n}" for n in range(80))]))
    assert code == 0
    assert "warning: " in out
    assert "of the 100 original items are shortcuts themselves" in out
    assert "not known how many slip through" in out


def test_nothing_that_needs_both_is_no_success(run):
    responses("r.csv", BAD)
    texts("i.jsonl", BAD)
    Path("i.jsonl").write_text(Path("i.jsonl").read_text().replace("low_quality", "other"))
    code, out, _ = run("bank", "refine", "r.csv", "--items", "i.jsonl", "-o", "o.jsonl", "--reasons", "w.csv")
    assert code == 1
    assert not Path("o.jsonl").exists()
    assert "nothing was written: no item is kept" in out
    assert Path("w.csv").is_file()
    assert "ranking of 0 subjects" in out


def test_images_in_the_place_of_others_are_not_overwritten(place):
    texts("i.jsonl", ORIGINALS)
    items = list(read_bank("i.jsonl").items)
    (place / "there/i").mkdir(parents=True)
    (place / "there/i/q-1.png").write_bytes(b"other")
    with pytest.raises(BankError, match="would replace another file"):
        write_items(Path("there/t.jsonl"), items)
    assert (place / "there/i/q-1.png").read_bytes() == b"other"
    assert not Path("there/t.jsonl").exists()
    shutil.rmtree("i")
    with pytest.raises(BankError, match="cannot be copied"):
        write_items(Path("t.jsonl"), items)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bank", "refine"], "required: RESPONSES"),
        (["bank", "refine", "nowhere.csv"], "nowhere.csv does not exist"),
        (["bank", "refine", "m.csv"], "m.csv: found 'subject,q1', expected a CSV with the columns"),
        (["bank", "refine", "r.csv", "-o", "x.bank"], "-o x.bank: items are written as JSON lines"),
        (["bank", "refine", "r.csv", "-o", "i.jsonl"], "name a new file that ends with .jsonl"),
        (["bank", "refine", "r.csv", "-o", "x.jsonl"], "-o x.jsonl needs --items with the texts"),
        (
            ["bank", "refine", "r.csv", "--reasons", "x.txt"],
            "--reasons x.txt: name a file that ends with .csv or .json",
        ),
        (["bank", "refine", "r.csv", "--reasons", "no/x.csv"], "--reasons no/x.csv: no is not a folder"),
        (["bank", "refine", "r.csv", "--size", "none"], "--size: budget 'none': write a count"),
        (["bank", "refine", "r.csv", "--size", "200"], "--size: budget 200: the bank has 6 items"),
        (["bank", "refine", "r.csv", "--form", "m4"], "invalid choice: 'm4'"),
        (["bank", "refine", "r.csv", "--items", "j.jsonl"], "--items j.jsonl: no text for any item, such as 'q-0'"),
        (["bank", "refine", "r.csv", "r.csv"], "r.csv: the item 'q-0' is in r.csv already"),
    ],
)
def test_mistakes_of_use(run, arguments, message):
    responses("r.csv", ORIGINALS[:6])
    texts("i.jsonl", ORIGINALS[:6])
    Path("j.jsonl").write_text('{"id": "other", "prompt": "?", "answer": "x"}\n')
    Path("m.csv").write_text("subject,q1\nm1,1\nm2,0\n")
    code, out, err = run(*arguments)
    assert code == 4
    assert message in err
    assert out == ""


def test_hostile_names_stay_text(run):
    rows = ["subject,item,format,score"]
    rows += [f"m{s},\x1b[31mq{n},{f},{(s + n) % 2}" for s in range(6) for n in range(8) for f in FORMATS]
    Path("r.csv").write_text("\n".join(rows) + "\n")
    _, out, err = run("bank", "refine", "r.csv")
    assert "\x1b" not in out + err
