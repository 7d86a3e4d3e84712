"""The gate report: what readers find in it, and that the strictest of them accepts it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from made import changed

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.junit import gate_report, write_gate_report

SCHEMA = etree.XMLSchema(file=str(Path(__file__).parent / "jenkins.xsd"))
PAYLOADS = [
    "\ud800\udfff",
    "\x00\x08\x0b\x1f\x7f\x85\ufffe",
    "]]> <![CDATA[ --> <!DOCTYPE x> &amp; &#0;",
    "\x1b[31mred\x1b[0m",
    "one\r\ntwo\rthree\n\n\tfour",
    "\"double\" 'single' `tick` <tag/>",
    "::error::x ##[group]",
    "模型 \U0001f600 \u202e",
    "x" * 100_000,
]


def read(record: RunRecord) -> Any:
    """The report, valid and parsed by another parser than the one that wrote it."""
    root = etree.fromstring(gate_report(record))
    SCHEMA.assertValid(root)
    return root


def test_what_a_reader_finds(make: SimpleNamespace) -> None:
    void = make.interview(name="chart", stop="ERRORS", error="3 errors in a row", bank={"name": "chart"})
    gates = [
        make.gate(),
        make.gate("INCONCLUSIVE", name="test_more"),
        make.gate("FAIL", name="test_other", notes=("a note",)),
        make.gate("ERROR", name="test_chart", of="chart"),
        make.gate("ERROR", name="test_alone", of=""),
    ]
    root = read(make.record([make.interview(), void], gates))
    assert dict(root.attrib) == {"tests": "7", "failures": "2", "errors": "3", "time": "166.501"}
    assert [suite.get("name") for suite in root] == [
        "mmmu",
        "chart",
        "gates without an interview",
    ]
    suite = root[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "time", "timestamp")] == [
        "4",
        "2",
        "0",
        "83.250",
        "2031-05-06T07:08:09Z",
    ]
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    expected = {"theta": "1.234", "standard_error": "0.188", "asked": "96", "bank_size": "640", "stop_reason": "BUDGET"}
    assert expected.items() <= properties.items()
    assert properties["accuracy"] == "0.612"
    assert properties["model_accuracy"] == "0.605"

    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert len(cases["test_promotion: accuracy at least"].findall("*")) == 1
    assert cases["test_promotion: accuracy at least"].find("system-out").text.startswith("PASS accuracy .612")
    failure = cases["test_other: accuracy at least"].find("failure")
    sentence = "FAIL accuracy .612 [.551, .671] < .55 required, 95 %, 96 of 640 items, design-based; a note"
    assert failure.get("type") == "fail"
    assert failure.get("message") == sentence
    assert failure.text.splitlines() == [sentence, "a note", "tests/test_eval.py:12"]
    assert cases["test_more: accuracy at least"].find("failure").get("type") == "inconclusive"
    assert cases["test_chart: accuracy at least"].find("error").get("message").startswith("ERROR accuracy")
    interviews = [case for case in root.iter("testcase") if case.get("name") == "interview"]
    assert [case.find("error") is None for case in interviews] == [True, False]
    assert interviews[1].find("error").get("message") == "ERROR 3 errors in a row"


@pytest.mark.parametrize(
    ("name", "condition", "case"),
    [
        ("toy-accuracy[at-least-0.4]", {"kind": "at_least", "value": 0.4}, "toy-accuracy: accuracy at least"),
        ("toy-accuracy[at-least-0.6]", {"kind": "at_least", "value": 0.6}, "toy-accuracy: accuracy at least"),
        (
            "toy-accuracy[not-worse-than-0.1-main]",
            {"kind": "not_worse_than", "value": 0.1, "name": "main"},
            "toy-accuracy: accuracy not worse than main",
        ),
        ("test_mine[late]", {"kind": "at_least", "value": 0.4}, "test_mine[late]: accuracy at least"),
        (
            "panel[rank-within-2-of-ant]",
            {"kind": "rank_within", "value": 2, "subject": "ant"},
            "panel: accuracy rank within of ant",
        ),
    ],
)
def test_a_new_threshold_keeps_the_name_of_a_case(make: SimpleNamespace, name: str, condition: Any, case: str) -> None:
    gate = make.gate(name=name, condition={"metric": "accuracy", **condition})
    gate.seconds = 1.25
    read_case = read(make.record(gates=[gate])).findall(".//testcase")[-1]
    assert (read_case.get("name"), read_case.get("time")) == (case, "1.250")


def test_an_interview_cut_off_is_an_error(make: SimpleNamespace) -> None:
    root = read(make.record([make.interview(stop="", stop_sentence="")], []))
    assert root.find(".//error").get("message") == "ERROR the interview did not finish"


def test_a_gate_without_a_verdict_never_passes(make: SimpleNamespace) -> None:
    gate = make.gate()
    gate.verdict = Verdict(Outcome.ERROR)
    assert read(make.record(gates=[gate])).get("errors") == "1"


def test_long_texts_are_cut_at_what_readers_show(make: SimpleNamespace) -> None:
    gates = [make.gate("FAIL", name="x" * 200), make.gate("FAIL", name="x" * 201)]
    for gate in gates:
        texts = {
            "metric": "",
            "requirement": "",
            "stated": "s" * 1_996,
            "notes": ["n" * 30_000],
            "size": 0,
            "condition": {},
        }
        gate.verdict = changed(gate.verdict, **texts)
    kept, cut = [c for c in read(make.record(gates=gates)).iter("testcase") if c.get("name") != "interview"]
    assert kept.get("name") == "x" * 200
    assert cut.get("name") == "x" * 200 + "... (1 more characters)"
    message = kept.find("failure").get("message")
    assert message.startswith("FAIL " + "s" * 1_995 + "... (")
    left_out = kept.find("failure").text.split("...")[-1]
    assert left_out.endswith(" more characters)")
    assert len(kept.find("failure").text) == 20_000 + len("..." + left_out)


def test_an_interview_says_what_has_no_score(make: SimpleNamespace) -> None:
    for statuses, said in (({"ok": 96}, False), ({"ok": 93, "timeout": 2, "refused": 1}, True)):
        root = read(make.record([make.interview(statuses=statuses)], []))
        assert ("1 of 96 refused; no score: 2 timeout" in root.find(".//system-out").text) == said
        assert ("no score" in root.find(".//system-out").text) == said


def test_a_study_tells_the_candidate_s_quantities(make: SimpleNamespace) -> None:
    record = make.record([], [])
    record.evaluations = [make.study(), make.study(error="no model answered")]
    whole, void = read(record)
    properties = {p.get("name"): p.get("value") for p in whole.iter("property")}
    assert properties["candidate"] == "cat"
    assert (properties["score"], properties["score_low"], properties["score_high"]) == ("3.8", "3.7", "3.9")
    assert properties["score_rank"] == "1"
    assert whole.find(".//error") is None
    assert void.find(".//error").get("message") == "ERROR no model answered"


def test_names_are_unique(make: SimpleNamespace) -> None:
    gates = [make.gate(), make.gate("FAIL"), make.gate(name="interview")]
    gates[2].verdict = Verdict(Outcome.PASS)
    root = read(make.record([make.interview(), make.interview(nodeid="other")], gates))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names) == 5
    assert len({suite.get("name") for suite in root}) == 2


def test_dots_in_names_do_not_look_like_packages(make: SimpleNamespace) -> None:
    root = read(make.record([make.interview(name="mmmu-2.5")], []))
    assert root[0].get("name") == "mmmu-2.5"
    assert root[0][1].get("classname") == "adaptive_eval.mmmu-2_5"


def test_another_checkpoint_goes_on_with_the_history_of_its_tests(make: SimpleNamespace) -> None:
    def cases(checkpoint: str) -> list[tuple[str | None, str | None]]:
        subject = {"name": checkpoint}
        interviews = [
            make.interview(name="mmmu", subject=subject),
            make.interview(name=f"side-{checkpoint}", series="side-1", subject=subject, nodeid="other"),
        ]
        root = read(
            make.record(
                interviews,
                [make.gate(of="mmmu"), make.gate(name=f"side-{checkpoint}-accuracy", of=f"side-{checkpoint}")],
            )
        )
        return [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]

    assert cases("step-1000") == cases("step-2000")
    assert ("adaptive_eval.side-1", "interview") in cases("step-1000")


def hostile(make: SimpleNamespace, text: str) -> RunRecord:
    """A record with `text` wherever a text can be."""
    gate = make.gate("FAIL", name=text, of=text, notes=(text,))
    gate.verdict = changed(gate.verdict, metric=text, requirement=text, stated=text)
    gate.file = gate.nodeid = text
    interview = make.interview(
        name=text,
        nodeid=text,
        subject={"name": text, "checkpoint": text},
        bank={"name": text, "scale": text},
        policy={"stream": text},
        statuses={text: 1},
        stop=text,
        stop_sentence=text,
        accuracy=make.interval(0.5, 0.4, 0.6, text),
        error=text,
        notes=[text],
    )
    record: RunRecord = make.record([interview], [gate])
    record.run = record.started = text
    return record


@pytest.mark.parametrize("payload", PAYLOADS, ids=[ascii(p[:12]) for p in PAYLOADS])
def test_payloads(make: SimpleNamespace, payload: str) -> None:
    record = hostile(make, payload)
    root = read(record)
    assert root.get("failures") == "1"
    assert root.get("errors") == "1"
    assert len(gate_report(record)) < 400_000
    for case in root.iter("testcase"):
        assert len(case.get("name")) < 255
        assert "\n" not in case.get("name")
    assert "\n" not in root.find(".//failure").get("message")


@given(text=st.text(st.characters(exclude_categories=())))
def test_any_text_is_valid(make: SimpleNamespace, text: str) -> None:
    read(hostile(make, text))


def test_the_same_record_gives_the_same_bytes(make: SimpleNamespace, tmp_path: Path) -> None:
    write_gate_report(make.record(), tmp_path / "deep" / "a.xml")
    write_gate_report(RunRecord.from_json(make.record().to_json()), tmp_path / "deep" / "b.xml")
    a, b = (path.read_bytes() for path in sorted((tmp_path / "deep").iterdir()))
    assert a == b == gate_report(make.record())
    assert a.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites ")


def test_an_empty_run_is_valid(make: SimpleNamespace) -> None:
    assert read(make.record([], [])).get("tests", "0") == "0"


def test_a_report_that_cannot_be_written(make: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"gates\.xml: cannot write the gate report: .*choose another path"):
        write_gate_report(make.record(), tmp_path / "file" / "gates.xml")
    with pytest.raises(UsageError, match="not a regular file"):
        write_gate_report(make.record(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
