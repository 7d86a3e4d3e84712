"""Studies in every report: their numbers, the warning, hostile names, and damaged records."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord, merged
from pytest_adaptive_eval.registry import evaluation_services
from pytest_adaptive_eval.reports.github import annotation_lines, outputs
from pytest_adaptive_eval.reports.junit import gate_report
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.reports.terminal import summary_lines

HOSTILE = "<script>alert(1)</script>|@you ::error::x\u202e\x1b[31m"


def run_of(make: SimpleNamespace, *studies: EvaluationRecord, gates: list[Any] | None = None) -> RunRecord:
    record: RunRecord = make.record([], [make.gate(of="council")] if gates is None else gates)
    record.evaluations = list(studies)
    record.exit_status = 0
    record.warn()
    return record


def terminal(record: RunRecord, width: int = 80) -> str:
    return "\n".join("".join(text for text, _ in line) for line in summary_lines(record, width))


def test_every_report_tells_the_candidate_s_score_and_rank(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = run_of(make, make.study())
    told = "score of cat 3.800 [3.700, 3.900], rank 1.0 [1, 1] of 3, 8 of 9 rounds"
    assert told in " ".join(terminal(record).split())
    assert "99 calls, 11 tokens, 3 loads of 3 models" in " ".join(terminal(record).split())
    assert told.replace("[", "\\[").replace("]", "\\]") in summary_markdown(record)
    assert "| **cat** | 3.800 \\[3.700, 3.900\\] | .060 | 1.0 \\[1, 1\\] |" in summary_markdown(record)
    assert told in gate_report(record).decode()
    page = html_page(record).replace("\u00a0", " ")
    parts = ("1 cat (candidate)", "3.800 [3.700, 3.900]", "Score by topic", "3.80 ± .20", "constant", "Who judged whom")
    for part in (*parts, "Agreement with coded truth: sums", "accuracies of 3 models"):
        assert part in page, part


def test_a_promotion_by_opinion_alone_warns_everywhere(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = run_of(make, make.study())
    assert record.promote
    said = "only models' opinion of each other speaks for this promotion"
    (warning,) = record.warnings
    assert warning.startswith(said)
    assert "(council)" in warning
    assert f"WARNING: {said}" in " ".join(terminal(record).split())
    assert "> ⚠️ only models' opinion" in summary_markdown(record)
    assert "<b>Warning:</b> only models" in html_page(record)
    folder = Path("/nowhere")
    assert annotation_lines(record, folder=folder, workspace=folder)[-1].startswith("::warning title=promotion::only")
    assert json.loads(json.dumps(record.to_json()))["warnings"] == [warning]
    assert RunRecord.from_json(record.to_json()).to_json() == record.to_json()
    assert merged([record, record], "x").warnings


@pytest.mark.parametrize("change", ["failed", "network", "truth"])
def test_no_other_promotion_warns(make: SimpleNamespace, change: str) -> None:
    gates = [make.gate(of="council")]
    if change == "truth":
        gates.append(make.gate(of="mmmu"))
    study = make.study(kind="network", account={}, opinion=False) if change == "network" else make.study()
    record = run_of(make, study, gates=gates)
    if change == "failed":
        record.exit_status = 1
    record.warn()
    assert record.warnings == []
    assert "WARNING" not in terminal(record)


def test_a_void_study_is_told_and_promotes_nothing(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    void = make.study(error="no task was accepted", metrics={}, account={})
    record = run_of(make, void, gates=[make.gate("ERROR", of="council")])
    record.exit_status = 1
    assert "void: no task was accepted" in terminal(record)
    assert "**void**: no task was accepted" in summary_markdown(record)
    assert "1 evaluation gave no result" in summary_markdown(record)
    assert "<b>Void:</b> no task was accepted" in html_page(record)
    (suite,) = ElementTree.fromstring(gate_report(record))
    assert suite.get("errors") == "2"
    assert outputs(record)["verdict"] == "ERROR"


def test_gates_stand_with_their_study(make: SimpleNamespace) -> None:
    gates = [make.gate(of="council"), make.gate(name="other", of="nothing")]
    suites = ElementTree.fromstring(gate_report(run_of(make, make.study(), gates=gates)))
    assert [(suite.get("name"), suite.get("tests")) for suite in suites] == [
        ("council", "2"),
        ("gates without an interview", "1"),
    ]


def test_hostile_names_stay_text(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    names = (HOSTILE, "bee", HOSTILE + "2")
    record = run_of(make, make.study(names, name=HOSTILE, error=HOSTILE, notes=[HOSTILE]))
    page = html_page(record).replace("\u00a0", " ")
    assert "<script>alert" not in page
    assert "\u202e" not in page
    shown = terminal(record)
    assert "\x1b" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())
    text = summary_markdown(record)
    assert "<script>" not in text
    assert "@you" not in text
    ElementTree.fromstring(gate_report(record))


@pytest.mark.parametrize(("name", "value"), [("scores", "x"), ("models", None), ("topics", [1])])
def test_a_damaged_account_is_named_on_the_page_and_breaks_no_report(
    make: SimpleNamespace, name: str, value: object
) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = run_of(make, make.study(account={**make.study().account, name: value}))
    page = html_page(record)
    assert "results are damaged, and some are not shown: Expected" in page
    assert f"at `$.{name}" in page
    assert "Ranks by score" in page
    for report in (terminal(record), summary_markdown(record), gate_report(record).decode()):
        assert "damaged" not in report


def test_page_of_an_unknown_study_kind_has_its_rankings_alone(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    page = html_page(run_of(make, make.study(kind="debate")))
    assert "Ranks by score" in page
    assert "Who judged whom" not in page


def test_section_of_another_package_is_found_by_its_entry_point(
    make: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    (tmp_path / "votes.py").write_text(
        "from pytest_adaptive_eval.evaluation import EvaluationKind\n"
        "from pytest_adaptive_eval.evaluation.tables import KindTable\n"
        "from pytest_adaptive_eval.registry import Service\n"
        "from pytest_adaptive_eval.reports.sections import Section, Table\n"
        "def tables(study, account):\n    return [Table('Votes', ('model', 'votes'), [('ann', '3')])]\n"
        "VOTE = EvaluationKind(KindTable, ('score',), print, section=lambda: Section(tables=tables))\n"
        "REGISTERED = (Service('vote', 'votes:VOTE'),)\n"
    )
    info = tmp_path / "votes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: votes\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[adaptive_eval.kinds]\nvote = votes\n")
    monkeypatch.syspath_prepend(tmp_path)
    evaluation_services.cache_clear()
    page = html_page(run_of(make, make.study(kind="vote")))
    evaluation_services.cache_clear()
    assert "Ranks by score" in page
    assert ">Votes</h3>" in page
