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
INTERVIEWER, TABLES = METHODS / "interviewer.md", "benchmarks/autojudger_tables.py"
STUDY = ("-m", "pytest_adaptive_eval", "study")
FIGURE = re.compile(r"\d*\.\d+")
pytestmark = pytest.mark.slow
needs_matrices = pytest.mark.skipif(
    not (DATA / "autojudger").is_dir(), reason=f"the published matrices are not in {DATA}"
)


def run(*arguments: str) -> str:
    """Return what a benchmark prints."""
    command = [sys.executable, *arguments]
    environment = {**os.environ, "ADAPTIVE_EVAL_DATA": str(DATA)}
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def row(text: str, name: str) -> list[str]:
    """Return the cells of a table's row."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.split("|")[2:]]


def nearly(*texts: str) -> object:
    """Return what the figures in texts are compared with: groups by k-means differ a little between processors."""
    return pytest.approx(figures(*texts), abs=0.5)


def figures(*texts: str) -> list[float]:
    """Return the figures in texts."""
    return [float(figure) for text in texts for figure in FIGURE.findall(text)]


def number(text: str) -> str:
    """Return a number as pages write it, without a zero before the point."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", text)


@needs_matrices
@pytest.mark.parametrize(("benchmark", "column"), [("AI2D", 0), ("MMMU", 2)])
def test_rows_without_a_seed_of_the_autojudger_study(benchmark: str, column: int) -> None:
    names = {"released": "IRT, the released difficulties", "nearest-difficulty": "IRT, a converged Rasch bank"}
    printed = run(*STUDY, "autojudger", benchmark, "--seeds", "1", "--only", ",".join(names))
    page = INTERVIEWER.read_text()
    for name, written in names.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"{name} "))
        assert line.split()[5].partition("±")[0] == row(page, written)[column]


@needs_matrices
def test_the_cost_of_an_interviewer() -> None:
    pytest.importorskip("open_clip", reason="encoders need open_clip (extra clip)")
    printed = run(TABLES, "table4")
    page = INTERVIEWER.read_text()
    text, picture = re.findall(r"([\d.]+)(?: GFLOPs)? for a", printed)
    assert f"{text} GFLOPs for a text of 77 tokens, and {picture} for a picture" in " ".join(page.split())
    costs = re.findall(r"^  (\d+B): (\S+); \S+; (\S+); (\S+) / (\S+)$", printed, re.MULTILINE)
    assert len(costs) == 3
    for name, *values in costs:
        assert row(page, name) == [*map(number, values), ""]


@needs_matrices
def test_the_course_of_an_interview() -> None:
    printed = run(TABLES, "figure6")
    course = dict(re.findall(r"^ +(1|\d0) +(\S+ +\S+)$", printed, re.MULTILINE))
    page = INTERVIEWER.read_text()
    columns = [list(map(number, values.split())) for values in course.values()]
    assert row(page, "after questions") == [*course, ""]
    assert row(page, "ability") == [ability for ability, _ in columns] + [""]
    assert row(page, "mean difficulty of the 20 nearest") == [difficulty for _, difficulty in columns] + [""]


@needs_matrices
def test_difficulties_by_responses_and_by_levels() -> None:
    printed = run(TABLES, "figure4")
    page = INTERVIEWER.read_text()
    names = {"1pl": "by responses", "annotated": "by level", "none": "none"}
    for name, written in names.items():
        at_most = re.findall(rf"bank \w+, {name},.* / (\S+)$", printed, re.MULTILINE)
        assert len(at_most) == 3
        assert figures(*row(page, written)) == nearly(*at_most)


@needs_matrices
def test_first_questions() -> None:
    printed = run(TABLES, "table7")
    names = {
        "residual factors": "clusters of residual factors",
        "response factors": "clusters of plain factors",
        "random vectors": "clusters of random vectors",
        "IRT": "even over the difficulties",
        "random": "drawn",
    }
    for name, written in names.items():
        cells = re.findall(rf"^first ten, mean \(best of 50\), \w+, {name}: (.*)$", printed, re.MULTILINE)
        if name == "IRT":  # all trials are alike
            cells = [cell.partition(" ")[0] for cell in cells]
        assert len(cells) == 2
        assert figures(*row(INTERVIEWER.read_text(), written)) == nearly(*cells)


@needs_matrices
def test_groups_of_models_by_size(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "tables.jsonl")]
    printed = run(TABLES, "groups", "--split", "random", "--benchmark", "MMMU", "--count", "1", *out)
    counts = re.findall(r"(\d+) models calibrate and (\d+) are tested", printed)
    page = INTERVIEWER.read_text()
    assert row(page, "models that calibrate / are tested") == [f"{a} / {b}" for a, b in counts] + [""]
    assert len(re.findall("^within groups, MMMU", printed, re.MULTILINE)) == 4


def test_pictures_in_backtests_of_responses_in_formats() -> None:
    pytest.importorskip("open_clip", reason="encoders need open_clip (extra clip)")
    encoder = ["--encoder", "fixtures/checkpoints/clip", "--part", "concat"]
    printed = run("benchmarks/backtests.py", "texts", "--bank", "vision", "--splits", "40", *encoder)
    assert len(printed.splitlines()) == 4
    assert figures(*row(INTERVIEWER.read_text(), "`concat`")) == nearly(printed)


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
    printed = run("-c", "from benchmarks import peer_gates; peer_gates.show(8, 5, 1000, '', False, 4)")
    sides, ranks = re.findall(r"at_least (\S+ / \S+) .* rank_within (\S+ / \S+ \(.*?\)),", printed)[0]
    written = row((METHODS / "networks.md").read_text(), "8 models, 5")
    assert [re.sub(r"\b0(?=\.)", "", cell) for cell in (sides, ranks)] == written[:2]


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
    printed = run(*STUDY, "m3irt", data.lower(), "--budget", "5%", "--only", ",".join(names))
    assert ".300 of the items are known to be of low quality" in " ".join(printed.split())
    page = (METHODS / "multimodal.md").read_text().partition(f"| {data} |")[2]
    for name, written in names.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"{name} "))
        rho, deviation, full, alone, alone_full, gamma, _ = line.split()[3:]
        cells = row(page, written)
        assert [cells[0], cells[2], *cells[4:7]] == [f"{rho} ({deviation})", gamma, full, alone, alone_full]
