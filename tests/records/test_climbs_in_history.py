"""The verbs about past runs on climbs: history, its levels, compare, drift, the page's trend, and correlate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from climbs import bare, climb, run

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import EvaluationRecord

#: Right answers by level of subjects, by task; `counting` orders them as `addition` does.
SUBJECTS = {
    "step-1": {"addition": [8, 0], "counting": [4, 1, 0]},
    "step-2": {"addition": [10, 3, 0], "counting": [6, 3, 0]},
    "step-3": {"addition": [10, 8, 0], "counting": [10, 5, 1, 0]},
    "step-4": {"addition": [10, 9, 4, 0], "counting": [10, 9, 8, 7]},
    "step-5": {"addition": [10, 10, 9, 1], "counting": [10, 10, 10, 10]},
}


class Verbs:
    """The command, on a history of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys, self.day = folder, capsys, 0

    def add(self, *interviews: EvaluationRecord) -> str:
        self.day += 1
        record = run(self.day, *interviews)
        write_run(self.folder, record)
        return record.run

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Exit code, output, and what was said besides."""
        try:
            code = main([*map(str, arguments), "--from", str(self.folder)])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    def json(self, *arguments: str | Path) -> Any:
        path = self.folder.parent / "out.json"
        code, _, err = self(*arguments, "--json", path)
        assert code == 0, err
        return json.loads(path.read_text())


@pytest.fixture
def verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(tmp_path / "evals", capsys)


@pytest.fixture
def five(verbs: Verbs) -> Verbs:
    """A run of each subject, after an older one of the first that must not count."""
    verbs.add(climb([10, 10, 10, 10], subject={"name": "step-1"}))
    for seed, (name, tasks) in enumerate(SUBJECTS.items()):
        who = {"name": name}
        verbs.add(
            *(
                climb(
                    right,
                    seed=seed,
                    name=task,
                    subject=who,
                    bank={"name": task, "content_hash": f"{task}{seed}", "task": {"seed": seed}},
                )
                for task, right in tasks.items()
            ),
            bare(subject=who, accuracy={"estimate": 0.5 - 0.1 * seed}),
        )
    return verbs


def test_history_shows_area_and_last_level(verbs: Verbs) -> None:
    verbs.add(climb([10, 7, 0]))
    settled = climb([10, 7, 0], name="settled")
    assert settled.levels is not None
    settled.levels.auc = None
    verbs.add(settled, bare(accuracy={"estimate": 0.5, "low": 0.4, "high": 0.6}))
    _, out, _ = verbs("history")
    lines = out.splitlines()
    assert "  1.7/2 [1.36, 2.51]  " in lines[1]
    assert "  1.7/2  " in lines[2]
    assert "  .500 [.400, .600]  " in lines[3]
    rows = verbs.json("history")
    assert [row.get("climb") for row in rows] == ["1.7/2", "1.7/2", None]
    assert rows[0]["levels"]["last_level"] == 2


def test_compare_tells_the_change_of_an_area(verbs: Verbs) -> None:
    before, after = verbs.add(climb([10, 10, 8, 2])), verbs.add(climb([10, 1, 0], seed=1))
    code, out, _ = verbs("history", "--compare", before, after)
    assert code == 0
    assert out.splitlines()[2].startswith("  auc   3.000 ->  1.100  -1.900 [-2.")
    (told,) = verbs.json("history", "--compare", before, after)["evaluations"]
    assert told["auc"]["high"] < -1.2


def test_a_fallen_area_alarms_and_stands_in_the_trend(verbs: Verbs) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    for day in range(12):
        verbs.add(climb([10, 10 - day % 2, 7 + day % 3, 1], seed=day))
    assert verbs("history", "--drift")[:2] == (0, "1 series of 12 runs watched\nno alarm\n")
    for seed in (20, 21):
        verbs.add(climb([10, 4, 0], seed=seed))
    code, out, _ = verbs("history", "--drift")
    assert code == 1
    assert "ALARM: auc of addition fell from 2.85 (12 runs) to 1.40 (" in " ".join(out.split())
    page = verbs.folder.parent / "page.html"
    assert verbs("report", "latest", "--html", page)[0] == 0
    text = page.read_text()
    assert "addition: area by levels" in text
    assert "auc, 14 runs on addition" in text
    assert "auc of addition fell from" in text


def test_correlations_of_evaluations(five: Verbs) -> None:
    code, out, err = five("history", "--correlate")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()[1:]]
    assert lines == [
        "subjects Spearman Kendall p",
        "addition (auc) counting (auc) 5 1.00 1.00 .017",
        "addition (auc) text (accuracy) 5 -1.00 -1.00 .017",
        "counting (auc) text (accuracy) 5 -1.00 -1.00 .017",
    ]
    told = five.json("history", "--correlate")
    values = {"step-1": 0.8, "step-2": 1.3, "step-3": 1.8, "step-4": 2.3, "step-5": 3.0}
    assert told[0]["first"] == {"name": "addition", "metric": "auc", "values": pytest.approx(values)}
    assert {pair["subjects"] for pair in told} == {5}
    assert told[1]["spearman"] == pytest.approx(-1.0)


def test_a_merged_record_is_correlated_as_its_runs_are(five: Verbs, tmp_path: Path) -> None:
    out = five("history", "--correlate")[1]
    whole = tmp_path / "whole.json"
    runs = [path.stem for path in sorted((five.folder / "runs").iterdir())[1:]]
    assert five("merge", *runs, "-o", whole)[0] in (0, 1)

    def of_whole(*arguments: str | Path) -> list[str]:
        assert main([*map(str, arguments), "--from", str(whole)]) == 0
        return five.capsys.readouterr().out.splitlines()

    assert of_whole("history", "--correlate") == out.splitlines()
    assert len(of_whole("history", "--evaluation", "addition")) == 1 + 5
    assert five("merge", *runs)[0] in (0, 1)  # beside its runs in one history, it counts nothing twice
    assert five("history", "--correlate")[1] == out


def test_a_merged_record_compares_all_pairs_of_climbs(verbs: Verbs, tmp_path: Path) -> None:
    runs = [verbs.add(climb(SUBJECTS[name]["addition"], subject={"name": name})) for name in list(SUBJECTS)[:3]]
    whole = tmp_path / "whole.json"
    assert verbs("merge", *runs, "-o", whole)[0] in (0, 1)
    code, out, _ = verbs("history", "--compare", whole)
    assert code == 0
    assert out.splitlines()[0] == "ladders, networks and panels: change with its 95 % interval, each by itself"
    heads = [line for line in out.splitlines() if "->" in line and not line.startswith(" ")]
    assert heads == [f"addition: step-{a} -> step-{b}" for a, b in ((1, 2), (1, 3), (2, 3))]
    told = verbs.json("history", "--compare", whole)
    assert (told["pairs"], len(told["evaluations"])) == ([], 3)


def test_correlations_with_scores_of_ones_own(five: Verbs, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text(
        "\ufeffsubject, mmlu ,size,same\nstep-1,30,1,7\nstep-2,31.5,,7\nstep-3,40,,7\nstep-4,39,2,7\nstep-5,50,2,7\n"
        "another,0,0,0\n"
    )
    code, out, err = five("history", "--correlate", table, "--evaluation", "addition")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "addition (auc) mmlu (reference) 5 .90 .80 .083" in lines
    assert "addition (auc) size (reference) 3 - - -" in lines
    assert "addition (auc) same (reference) 5 - - -" in lines


@pytest.mark.fast_rows(4)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("subject,mmlu\nstep-1,3,4\n", "line 2 ('step-1'): 3 cells, expected 2"),
        ("subject,mmlu\nstep-1\n", "line 2 ('step-1'): 1 cells, expected 2"),
        ("subject,mmlu\nstep-1,3\nstep-1,4\n", "line 3: duplicate 'step-1'"),
        ("subject,mmlu\nstep-1,high\n", "line 2: mmlu is 'high', expected a number"),
        ("subject,mmlu,mmlu\nstep-1,3,4\n", "make the names unique"),
        ('subject,mmlu\n"step-1,3\n', "line 2"),
        ("subject,mmlu\nst\udcffep,3\n", "not UTF-8 text"),
    ],
)
def test_references_that_cannot_be_read(five: Verbs, tmp_path: Path, text: str, said: str) -> None:
    table = tmp_path / "scores.csv"
    table.write_text(text, errors="surrogateescape")
    code, out, err = five("history", "--correlate", table)
    assert (code, out) == (4, "")
    assert said in err


def test_what_cannot_be_correlated_says_so(verbs: Verbs, tmp_path: Path) -> None:
    verbs.add(bare(accuracy={"estimate": 0.5}))
    for arguments in ([], ["--subject", "none"]):
        code, _, err = verbs("history", "--correlate", *arguments)
        assert code == 4
        assert "has too little to correlate, expected two quantities of the same subjects" in err
        assert "give --correlate FILE.csv" in err
    code, _, err = verbs("history", "--correlate", tmp_path / "none.csv")
    assert code == 4
    assert "none.csv: No such file" in err


def test_names_cannot_command_the_terminal(verbs: Verbs, tmp_path: Path) -> None:
    for n in range(5):
        who = {"name": f"\x1b[31m::error::{n}"}
        verbs.add(climb([10, n, 0], subject=who, name="\x1b]0;x\x07::error::"), bare(subject=who))
    table = tmp_path / "scores.csv"
    table.write_text(f"subject,\x1b[2J##[error]\n\x1b[31m::error::{0},1\n")
    for arguments in (["history", "--correlate", table], ["history"]):
        code, out, err = verbs(*arguments)
        assert code == 0
        assert "\x1b" not in out + err
        assert "::error::" not in out + err
        assert "##[" not in out + err
