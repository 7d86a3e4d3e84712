"""``calibrate --formats``: a bank with parameters in formats, from a table of answers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.items.modalities import asked_in_formats

pytest.importorskip("torch", reason="fits of M2 and M3 need torch (extra hf)")

FORMATS = ("image+text", "image", "text", "none")


@pytest.mark.slow
def test_a_table_becomes_a_bank_that_can_be_asked_in_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_adaptive_eval.calibration import scale as scale_module
    from pytest_adaptive_eval.calibration.multimodal import Training

    monkeypatch.setitem(scale_module.FORMAT_FITS, "m2", ("m2", Training(rate=0.05, steps=10_000)))  # fewer steps
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    subjects, items = 12, 30
    ability, needy = rng.normal(size=subjects), np.arange(items) % 2 == 0
    rows = ["subject,item,format,score"]
    for s in range(subjects):
        for i in range(items):
            for form in FORMATS:
                easy = form == "image+text" or (form == "image" and not needy[i])
                p = 1 / (1 + np.exp(-1.5 * ability[s] - 0.5)) if easy else 0.1
                rows.append(f"s{s},q{i},{form},{int(rng.random() < p)}")
    Path("answers.csv").write_text("\n".join(rows) + "\n")
    texts = [
        {
            "id": f"q{i}",
            "prompt": "?",
            "answer": "yes",
            "formats": FORMATS,
            "meta": {"low_quality": "image"} if not needy[i] else {},
        }
        for i in range(items)
    ]
    Path("items.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    command = ["calibrate", "answers.csv", "--items", "items.jsonl", "--formats", "m2", "--policy", "none", "--force"]
    main([*command, "-o", "v.bank", "--abilities", "abilities.csv"])
    said = capsys.readouterr().out
    table = [line.split(",") for line in Path("abilities.csv").read_text().splitlines()]
    assert table[0] == ["subject", "base", "image", "text", "cross"]
    sums = {name: sum(map(float, numbers)) for name, *numbers in table[1:]}
    shown = [line.split()[0] for line in said.partition("the largest sum first\n")[2].splitlines()[1 : subjects + 1]]
    assert shown == sorted(sums, key=lambda name: -sums[name])
    assert "in formats: M2-IRT, parts from 0 to q = " in said
    assert "share of the abilities' variance that is not error: base" in said
    bank = read_bank("v.bank")
    scale = bank.in_formats
    assert scale is not None
    assert scale.standings.shape == (len(bank.subjects), 4)
    order = [int(name[1:]) for name in bank.ids]
    assert scale.gains[needy[order]].mean() > scale.gains[~needy[order]].mean() + 0.1
    told = {row["name"]: row for row in scale.report["separations"]}
    assert set(told) >= {"difficulty cross", "discrimination base", "information"}
    assert 0 <= told["information"]["p"] <= 1
    pairs = asked_in_formats(bank)
    assert (len(pairs), pairs.parts) == (len(bank) * 4, ("base", "image", "text", "cross"))


@pytest.mark.slow
def test_sparse_responses_count_over_the_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of the responses of 24 subjects is 2.4 an item in each format, and 9.6 an item."""
    rng = np.random.default_rng(2)
    rows = ["subject,item,format,score"]
    for s in range(24):
        for i in range(120):
            rows += [
                f"s{s},q{i},{form},{int(rng.random() < (0.2 + 0.025 * s) / (1 + place))}"
                for place, form in enumerate(FORMATS)
                if rng.random() < 0.1
            ]
    (tmp_path / "sparse.csv").write_text("\n".join(rows) + "\n")
    main(["calibrate", str(tmp_path / "sparse.csv"), "--formats", "m3", "--model", "1pl"])
    said = capsys.readouterr().out
    assert "half of the items have fewer than" not in said
    assert main(["calibrate", str(tmp_path / "sparse.csv"), "--abilities", str(tmp_path / "a.csv")]) == 4
    assert "goes with --formats" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m2", "m3", "m2-paper", "m3-paper"])
def test_a_fit_in_formats_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_adaptive_eval.calibration import scale as scale_module
    from pytest_adaptive_eval.calibration.multimodal import fit_multimodal

    given = {}

    def fit(*args, **settings):
        given.update(settings)
        return fit_multimodal(*args, **{**settings, "bounds": (4.0,)})

    monkeypatch.setattr(scale_module, "fit_multimodal", fit)
    scores = np.random.default_rng(0).integers(0, 2, (6, 10, 4)).astype(float)
    scale = scale_module.format_scale(scores, None, name, limit=20)
    training = given["training"]
    assert (scale.items.form, scale.report["form"], scale.report["fit"]) == (name[:2], name[:2], name)
    assert (training.rate, training.steps) == (0.01, 20)
    assert {training.item_spread, training.ability_spread} == {math.inf if "paper" in name else 1.0}


def test_names_of_fits_in_formats_are_the_command_s(capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_adaptive_eval.calibration.scale import FORMAT_FITS

    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    assert f"--formats {{{','.join(FORMAT_FITS)}}}" in capsys.readouterr().out


def test_responses_in_one_format_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text("subject,q1,q2\na,1,0\nb,0,1\n")
    assert main(["calibrate", str(tmp_path / "r.csv"), "--formats", "m3"]) != 0
    assert "expected a CSV with the columns subject, item, format and score" in capsys.readouterr().err


@pytest.mark.slow
def test_columns_of_formats_that_are_fitted_as_items_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    named = [name for i in range(20) for name in (f"q{i}", f"q{i}@text")]

    def told(columns: list[str]) -> bool:
        rows = [f"s{s}," + ",".join(str(x) for x in (rng.random(40) < 0.3 + s / 40).astype(int)) for s in range(12)]
        (tmp_path / "r.csv").write_text("\n".join([",".join(["subject", *columns]), *rows]) + "\n")
        main(["calibrate", str(tmp_path / "r.csv"), "--policy", "none"])
        said = " ".join(capsys.readouterr().out.split())
        return "20 of 40 items are named ITEM@FORMAT, as in responses in formats" in said

    assert told(named)
    assert not told([name.replace("@", "-") for name in named])
    assert not told([name.replace("q", "x") if "@" in name else name for name in named])  # no item's name before it
