"""Figures on the pages of methods come out of their commands, on the smallest split of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METHODS = ROOT / "docs" / "methods"
DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data"))
pytestmark = pytest.mark.slow


def run(*arguments: str) -> str:
    """Return what a benchmark prints."""
    command = [sys.executable, *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def row(text: str, name: str) -> list[str]:
    """Return the cells of a table's row."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.split("|")[2:]]


def number(text: str) -> str:
    """Return a number as pages write it, without a zero before the point."""
    return re.sub(r"^0(?=\.)", "", text)


@pytest.mark.skipif(not (DATA / "autojudger").is_dir(), reason=f"the published matrices are not in {DATA}")
@pytest.mark.parametrize(("benchmark", "column"), [("AI2D", 0), ("MMMU", 2)])
def test_rows_without_a_seed_of_the_autojudger_tables(tmp_path: Path, benchmark: str, column: int) -> None:
    names = {"IRT, released difficulties": "IRT, the released difficulties", "IRT": "IRT, a converged Rasch bank"}
    out = ["--out", str(tmp_path / "tables.jsonl")]
    table = ["benchmarks/autojudger_tables.py", "run", "--split", "paper", "--benchmark", benchmark, "--count", "1"]
    run(*table, *out, "--only", *names)
    printed = run("benchmarks/autojudger_tables.py", "show", *out)
    page = (METHODS / "interviewer.md").read_text()
    for name, written in names.items():
        assert row(printed, name)[4].partition("±")[0] == row(page, written)[column]


def test_the_cost_of_an_interviewer(tmp_path: Path) -> None:
    if not (DATA / "autojudger").is_dir():
        pytest.skip(f"the published matrices are not in {DATA}")
    printed = run("benchmarks/autojudger_tables.py", "show", "--out", str(tmp_path / "none.jsonl"))
    costs = [number(cost) for cost in re.findall(r"^  \d+B: (\S+);", printed, re.MULTILINE)]
    page = " ".join((METHODS / "interviewer.md").read_text().split())
    assert "It is {}, {} and {} for subjects of 3B, 7B and 72B".format(*costs) in page


def test_the_exact_rates_of_repeated_looks() -> None:
    printed = run("benchmarks/repeated_looks.py")
    rates = re.findall(r"up to 150 answers: (\S+) with repeated looks, (\S+) with one", printed)
    (looks, once), (near, near_once) = [tuple(map(number, pair)) for pair in rates]
    page = " ".join((METHODS / "gates.md").read_text().split())
    assert f"with a probability of {looks}, and one of .695 with {near}." in page
    assert f"A single look at the end passes them with {once} and {near_once}" in page


def test_the_row_of_a_small_panel() -> None:
    name = "4 models, no bad judge"
    printed = run("benchmarks/peer_panels.py", "--only", name)
    form = r"oracle (\S+)  reliability (\S+)  paper (\S+); above paper (\S+), not below (\S+); .* cover (\S+); "
    (found,) = re.findall(form, printed)
    false = number(re.findall(r"honest (\d\S*?);", printed)[0])
    written = row((METHODS / "networks.md").read_text(), name)
    assert [*map(number, found), "-", false] == written[:-1]


def test_the_row_of_gates_on_the_smallest_panel() -> None:
    printed = run("-c", "from benchmarks import peer_gates; peer_gates.show(3, 3, 500)")
    sides, above, rank = re.findall(r"at_least (.*\)), above (\S+), rank_within (\S+);", printed)[0]
    written = row((METHODS / "networks.md").read_text(), "3 models, 3 rounds")
    assert [re.sub(r"\b0(?=\.)", "", sides), number(above), number(rank)] == written[:-1]


def test_the_pictures_that_a_vision_model_read() -> None:
    printed = run("docs/_build/picture_tasks.py", "--answers", "docs/_build/picture_answers.txt")
    right = dict(re.findall(r"^(\w+): (\d+) of 20 right", printed, re.MULTILINE))
    page = (METHODS / "tasks.md").read_text()
    heads, _, cells = page[page.index("| `grid` | `icons`") :].splitlines()[:3]
    names = [head.strip(" `") for head in heads.strip("|").split("|")]
    assert right == dict(zip(names, (cell.strip() for cell in cells.strip("|").split("|")), strict=True))


@pytest.mark.skipif(not (DATA / "m3irt").is_dir(), reason=f"the responses in formats are not in {DATA}")
@pytest.mark.parametrize("data", ["MMMU", "MathVista"])
def test_rows_of_rankings_in_formats_that_take_seconds(data: str) -> None:
    names = {"random": "random", "irt": "IRT", "item-total": "item-total"}
    ranking = ["benchmarks/multimodal_tables.py", "ranking", "--data", data.lower(), "--budgets", "5%"]
    printed = run(*ranking, "--contenders", *names)
    assert ".300 of the items are known to be of low quality" in " ".join(printed.split())
    page = (METHODS / "multimodal.md").read_text().partition(f"| {data} |")[2]
    for name, written in names.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"{name} "))
        rho, deviation, full, alone, alone_full, gamma, _ = line.split()[3:]
        cells = row(page, written)
        assert [cells[0], cells[2], *cells[4:7]] == [f"{rho} ({deviation})", gamma, full, alone, alone_full]
