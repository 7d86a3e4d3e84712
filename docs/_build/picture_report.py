"""Make ``docs/images/report-light.png`` and ``docs/images/report-dark.png``: the HTML report of two real runs, as a browser shows it.

Twelve runs of one checkpoint with different seeds are the history, and the last of them is the run of the dark
picture.  Then come two runs of a regressed checkpoint, the second of which is the run of the light one.  Run from the
repository's root with ``python docs/_build/picture_report.py``; needs ``chromium`` and the extras ``hf``, ``html`` and
``test``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.records.drift import SeriesPoint, Series, monitor
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.reports.page import html_page

ROOT = Path(__file__).resolve().parents[2]
LATE, REGRESSED = range(1, 13), range(13, 15)
WIDTH, HEIGHT = 1280, 2480
EVALUATION = """
[[eval]]
name = "pictures"
bank = "{bank}"
budget = "25%"

[[eval.gate]]
metric = "accuracy"
at_least = 0.55

[[eval.gate]]
metric = "ability"
at_least = 0.0
"""
#: Fresh, quiet, and nothing of its own over the network.
CHROMIUM = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def run(folder: Path, checkpoint: str, seed: int) -> RunRecord:
    """One run of the evaluation on a checkpoint of the fixtures."""
    path = folder / f"{checkpoint}-{seed}.json"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval", "--rootdir=."),
        *("pictures.eval.toml", f"--adaptive-eval-seed={seed}", f"--adaptive-eval-record={path}"),
        f"--adaptive-eval-model={ROOT / 'fixtures' / 'checkpoints' / checkpoint}",
    ]
    subprocess.run(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False, capture_output=True)
    return read_run(path)


def history(records: Sequence[RunRecord]) -> list[Series]:
    """The series of these runs: ability, and accuracy by category."""
    first = records[0].interviews[0]
    about = [first.name, *(getattr(first.bank, name) for name in ("name", "content_hash", "scale"))]
    points: dict[tuple[str, str], list[SeriesPoint]] = {}
    for record in records:
        held = record.interviews[0]
        who = (record.run, record.started, held.subject.name, held.subject.checkpoint)
        assert held.theta
        assert held.standard_error
        points.setdefault(("ability", ""), []).append(SeriesPoint(*who, held.theta[0], held.standard_error[0]))
        for row in held.categories:
            assert row.accuracy
            assert row.standard_error
            point = SeriesPoint(*who, row.accuracy.estimate, row.standard_error)
            points.setdefault(("accuracy", row.category), []).append(point)
    return [Series(*about, metric, category, tuple(these)) for (metric, category), these in points.items()]


def photograph(page: str, path: Path, folder: Path) -> None:
    """A picture of the page's beginning, in 256 colours, the rare ones among them."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    profile = Path(tempfile.mkdtemp(dir=folder))
    shot = [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={folder / 'page.png'}"]
    browser = shutil.which("chromium") or "chromium"
    subprocess.run([browser, *CHROMIUM, *shot, (folder / "page.html").as_uri()], check=True, capture_output=True)
    with Image.open(folder / "page.png") as image:
        few = image.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


def main() -> None:
    """Hold the runs and photograph two of them."""
    bank = ROOT / "fixtures" / "banks" / "vision.bank"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pictures.eval.toml").write_text(EVALUATION.format(bank=bank.as_posix()), encoding="utf-8")
        records = [run(folder, "vision-late", seed) for seed in LATE]
        after = [run(folder, "vision-regressed", seed) for seed in REGRESSED]
        for shown, theme in (([*records, *after], "light"), (records, "dark")):
            series = history(shown)
            page = html_page(
                shown[-1], banks={"pictures": read_bank(bank)}, series=series, alarms=monitor(series)
            ).replace('<html lang="en">', f'<html lang="en" data-theme="{theme}">', 1)
            photograph(page, ROOT / "docs" / "images" / f"report-{theme}.png", folder)


if __name__ == "__main__":
    main()
