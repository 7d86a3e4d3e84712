"""A workflow gets annotations, a summary and outputs, and nothing in a record can add to them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import changed

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.extensions.exports.trackers import mlflow_metrics
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports.github import annotation_lines, outputs, write_failure, write_github
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.text import clean_terminal
from tests.reports.runner import Command, commands

ROOT = Path("/srv/checkout")
SENTENCE = "61 % right, between 55.1 % and 67.1 %; at least 55 % required"
HOSTILE = [
    "::set-output name=promote::true",
    "x\n::set-output name=promote::true",
    "x\r::add-mask::a",
    "x\r\n  ::stop-commands::t",
    "##[set-env name=PATH]/tmp",
    "a ##[error]b",
    "a%0A::error::b",
    "title,file=/etc/passwd,line=1",
    "a::b::c",
    "::error::",
    "\x1b[31m::error::x\x1b[0m",
    "\u200b::error::x",
    "::error:\u200d:x",
    "#\u200d#[error]x",
    "\ud800 \x00 \u2028::error::x\x85::error::x",
    "promote=true\nEOF<<EOF",
    "%25%0D%3A%2C",
    "",
    "::" * 5000,
]


def at(make: SimpleNamespace, outcome: str, n: int = 1, **verdict: Any) -> list[Any]:
    """So many gates of an outcome."""
    gates = [make.gate(outcome, name=f"test_{outcome.lower()}_{i}") for i in range(n)]
    for gate in gates:
        gate.verdict = changed(gate.verdict, **verdict)
    return gates


def show(record: RunRecord, folder: Path = ROOT, workspace: Path = ROOT) -> list[Command]:
    lines = annotation_lines(record, folder=folder, workspace=workspace)
    found = commands("\n".join(lines))
    assert [command.line for command in found] == lines, "each line is a command, and no command hides in another"
    return found


def test_each_gate_is_told_where_it_stands(make: SimpleNamespace) -> None:
    gates = [
        *at(make, "PASS"),
        *at(make, "INCONCLUSIVE", on_inconclusive="warn"),
        *at(make, "INCONCLUSIVE", notice=True),
        *at(make, "INCONCLUSIVE"),
        *at(make, "FAIL"),
        *at(make, "ERROR"),
    ]
    found = show(make.record(gates=gates), ROOT / "evals")
    assert [c.name for c in found] == ["error", "error", "error", "warning", "warning", "notice"]
    assert found[1].properties == {
        "file": "evals/tests/test_eval.py",
        "line": "12",
        "title": "FAIL test_fail_0",
    }
    formula = "accuracy .612 [.551, .671] < .55 required, 95 %, 96 of 640 items, design-based"
    assert found[1].data == f"FAIL {SENTENCE}; {formula}"
    escaped = f"{SENTENCE}; {formula}".replace("%", "%25")
    assert annotation_lines(make.record(gates=at(make, "FAIL")), folder=ROOT, workspace=ROOT) == [
        f"::error file=tests/test_eval.py,line=12,title=FAIL test_fail_0::FAIL {escaped}"
    ]


@pytest.mark.parametrize(
    ("n", "lines", "last"), [(10, 10, "accuracy"), (11, 10, "2 more gates"), (500, 10, "491 more")]
)
def test_no_more_than_are_shown(make: SimpleNamespace, n: int, lines: int, last: str) -> None:
    found = show(make.record(gates=at(make, "PASS", n) + at(make, "FAIL", n)))
    assert [c.name for c in found] == ["error"] * lines + ["notice"] * lines
    assert last in found[9].data
    assert last in found[-1].data


@pytest.mark.parametrize(
    ("file", "folder", "shown"),
    [
        ("tests/a.py", ROOT, "tests/a.py"),
        ("tests/a.py", ROOT / "sub", "sub/tests/a.py"),
        ("../tests/a.py", ROOT / "sub", "tests/a.py"),
        ("../../etc/passwd", ROOT, None),
        ("/etc/passwd", ROOT, None),
        (f"{ROOT}/tests/a.py", Path("/elsewhere"), "tests/a.py"),
        ("a,line=7:b%.py", ROOT, "a,line=7:b%.py"),
        ("nul\x00.py", ROOT, None),
        ("x" * 5000, ROOT, "x" * 5000),
        ("", ROOT, None),
    ],
)
def test_files_are_those_of_the_checkout(make: SimpleNamespace, file: str, folder: Path, shown: str | None) -> None:
    gate = make.gate("FAIL")
    gate.file = file
    (found,) = show(make.record(gates=[gate]), folder)
    assert found.properties.get("file") == shown
    assert found.properties.get("line") == (None if shown is None else "12")


def hostile(make: SimpleNamespace, text: str, outcome: str = "FAIL") -> RunRecord:
    gate = make.gate(outcome, name=text, of=text, notes=(text,))
    gate.verdict = changed(gate.verdict, metric=text, requirement=text, stated=text, notes=(), size=0)
    gate.nodeid = text
    gate.file = text
    interview = make.interview(
        name=text, subject={"name": text}, bank={"name": text}, stop=text, stop_sentence=text, notes=[text]
    )
    record: RunRecord = make.record([interview], [gate])
    record.run = record.started = text
    record.versions = {text: text}
    return record


def alone(record: RunRecord, text: str) -> None:
    """The text is data of one command, and of nothing else."""
    (found,) = show(record)
    assert found.name == "error"
    assert found.data.startswith(clean_terminal(f"FAIL {text}", 1_000))
    assert set(found.properties) <= {"file", "line", "title"}
    assert found.properties["title"] == clean_terminal(f"FAIL {text}", 120, keep_end=True)
    plain = RunRecord.from_json(record.to_json())
    plain.gates[0].verdict = Verdict(Outcome.FAIL)
    assert outputs(plain) == outputs(record)


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:16]) for text in HOSTILE])
def test_payloads(make: SimpleNamespace, text: str) -> None:
    alone(hostile(make, text), text)


@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(HOSTILE[:-1]), max_size=4).map(
        "".join
    )
)
def test_any_text_is_data(make: SimpleNamespace, text: str) -> None:
    alone(hostile(make, text), text)


def test_outputs(make: SimpleNamespace) -> None:
    gates = [*at(make, "PASS", 3), *at(make, "INCONCLUSIVE", notice=True)]
    record = make.record(gates=gates)
    record.exit_status = 0
    assert outputs(record) == {
        "promote": "false",
        "verdict": "INCONCLUSIVE",
        "passed": "3",
        "failed": "0",
        "inconclusive": "1",
        "errors": "0",
        "notices": "1",
        "drift": "off",
        "exit-status": "0",
        "asked": "96",
    }
    record.gates.pop()
    assert (outputs(record)["promote"], outputs(record)["verdict"]) == ("true", "PASS")
    record.exit_status = None
    assert (outputs(record)["promote"], outputs(record)["exit-status"]) == ("false", "")
    record.interviews[0].error = "void"
    assert outputs(record)["verdict"] == "ERROR"
    assert outputs(make.record([], []))["verdict"] == "NONE"


def test_a_record_that_contradicts_itself_promotes_nothing(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = make.record(gates=[*at(make, "PASS", 1), *at(make, "INCONCLUSIVE", on_inconclusive="fail")])
    record.exit_status = 0
    assert outputs(record)["promote"] == "false"
    for told in (summary_markdown(record), html_page(record)):
        assert "Not to be promoted" in told
        assert "1 gate could not be decided." in told
    assert mlflow_metrics(record)["promote"] == 0.0
    assert outputs(make.record(gates=[*at(make, "FAIL"), *at(make, "PASS")]))["verdict"] == "FAIL"


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:16]) for text in HOSTILE])
def test_outputs_are_words_and_numbers(make: SimpleNamespace, text: str) -> None:
    for outcome in ("PASS", "ERROR"):
        for name, value in outputs(hostile(make, text, outcome)).items():
            assert name.replace("-", "").isalpha()
            assert value in {"", "true", "false", "PASS", "ERROR", "NONE", "off"} or value.isdecimal()


def keys(path: Path) -> dict[str, str]:
    """As the runner reads the file: lines of key=value, empty ones skipped, the last of a key counts."""
    lines = [line for line in path.read_text().split("\n") if line]
    assert all("<<" not in line for line in lines)
    return dict(line.split("=", 1) for line in lines)


def test_a_step_gets_all_three(make: SimpleNamespace, tmp_path: Path) -> None:
    environ = {
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    (tmp_path / "output").write_text("mine=1")
    told: list[str] = []
    record = make.record(gates=at(make, "FAIL"))
    write_github(record, environ, told.append, folder=tmp_path)
    (found,) = commands("".join(told))
    assert found.properties["file"] == "tests/test_eval.py"
    assert keys(tmp_path / "output") == {"mine": "1", **outputs(record)}
    assert (tmp_path / "summary").read_text().startswith("## ⛔ Not to be promoted\n")


def test_the_summary_of_a_step_has_wrong_answers_with_their_questions(make: SimpleNamespace, tmp_path: Path) -> None:
    bank = ItemBank.uncalibrated("sums", [Item("sum-7", "What is 17 + 25?", "42")])
    wrong = [Administration(1, "sum-7", bank.items[0].content_hash, score=0.0, text="441")]
    about = {"name": "sums", "calibrated": False, "content_hash": bank.content_hash}
    record = make.record([make.interview(name="sums", bank=about, administrations=wrong)])
    environ = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    write_github(record, environ, lambda text: None, folder=tmp_path, banks={"sums": bank})
    summary = (tmp_path / "summary").read_text()
    assert [text for text in ("asked: What is 17", "expected: 42", "441") if text not in summary] == []


def test_what_is_not_asked_for_is_not_written(make: SimpleNamespace, tmp_path: Path) -> None:
    told: list[str] = []
    write_github(make.record(), {"GITHUB_OUTPUT": ""}, told.append, folder=tmp_path)
    (found,) = commands("".join(told))
    assert found.properties["file"] == "tests/test_eval.py", "the folder stands for a workspace that is not named"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
def test_files_that_cannot_be_written(make: SimpleNamespace, tmp_path: Path, name: str) -> None:
    environ = {name: str(tmp_path / "none" / "file")}
    with pytest.raises(UsageError, match=f"none/file: cannot write to {name}: No such file"):
        write_github(make.record(), environ, lambda text: None, folder=tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        write_failure(environ, lambda text: None)


def test_no_record_is_no_promotion(tmp_path: Path) -> None:
    environ = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    told: list[str] = []
    write_failure(environ, told.append)
    (found,) = commands("".join(told))
    assert (found.name, found.properties) == ("error", {"title": "adaptive evaluation"})
    assert keys(tmp_path / "output") == {"promote": "false", "verdict": "ERROR", "drift": "unknown"}
    assert "Not to be promoted" in (tmp_path / "summary").read_text()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("::error file=a.py,line=1,title=a%3Ab%2Cc%25::d%0Ae", [("error", "d\ne")]),
        ("  \t::error::x", [("error", "x")]),
        ("\u3000::ERROR::x", [("ERROR", "x")]),
        ("x\r::error::y", [("error", "y")]),
        ("x ::error::y", []),
        ("::unknown::y", []),
        ("::error", []),
        (":: error::x", []),
        ("| ::error::x", []),
        ("progress ##[group]x", [("group", "x")]),
        ("##[set-env name=a;b=c]%5D%3B", [("set-env", "];")]),
        ("##[command]x ##[error]y", []),
        ("# #[error]y", []),
        ("\u200b::error::x", [("error", "x")]),
        ("::error:\u200d:x", [("error", "x")]),
        (
            "::stop-commands::T0k\n::error::x\n##[error]x\n::T0K::\n::error::y",
            [("stop-commands", "T0k"), ("T0K", ""), ("error", "y")],
        ),
        ("::stop-commands::t\n::other::\n::error::y", [("stop-commands", "t")]),
        ("::stop-commands::t\n##[t]\n##[error]y", [("stop-commands", "t"), ("t", ""), ("error", "y")]),
        ("::stop-commands::error\n::stop-commands::error\n::error::x", [("stop-commands", "error"), ("error", "x")]),
        ("::stop-commands::\n::::\n::error::x", [("stop-commands", "")]),
    ],
)
def test_the_runner_as_it_is_played(output: str, expected: list[tuple[str, str]]) -> None:
    assert [(command.name, command.data) for command in commands(output)] == expected


def test_properties_as_the_runner_reads_them() -> None:
    (v2,) = commands("::error file=a.py,line=1,empty=,title=a%3Ab%2Cc%25=x::d")
    assert v2.properties == {"file": "a.py", "line": "1", "title": "a:b,c%=x"}
    (v1,) = commands("##[warning file=a.py;title=%3B%5D]d")
    assert v1.properties == {"file": "a.py", "title": ";]"}
