"""The gate report: JUnit XML that the strictest reader, Jenkins, accepts.

A suite is an evaluation, such as an interview, and a test case a gate. The model is a property. One more test case
shows whether the evaluation itself is usable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.view import ReportView, views
from pytest_adaptive_eval.text import clean_xml

_NAME, _MESSAGE, _BODY = 200, 2_000, 20_000  #: Longest name, message and body, in characters; readers show no more.
DRIFT_CASE = "drift"  #: Name of the case that says whether a level fell.
#: Attributes in Jenkins' schema, of those that the package junit-xml writes.
_ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
    "testcase": {"name", "classname", "time"},
}


def write_gate_report(record: RunRecord, path: Path) -> None:
    """Write the gate report, replacing an earlier one in one step.

    Raises:
        UsageError: The file cannot be written.
    """
    write_whole(path, [gate_report(record)], "the gate report")


def gate_report(record: RunRecord) -> bytes:
    """Return the gate report as UTF-8 XML; the same record gives the same bytes.

    A PASS is a passed test case, FAIL and INCONCLUSIVE are failures (of type ``fail`` and ``inconclusive``), ERROR is
    an error. The verdict is the failure's message and the first line of its text, because readers show nothing else.
    """
    from junit_xml import TestSuite, to_xml_report_string

    started = clean_xml(record.started, _NAME)
    suites = []
    unique = _UniqueNames()
    for view in views(record):
        # never the checkpoint's name: a CI would begin its history of a test again with each candidate
        name = unique(_one_line(view.record.series or view.record.name or view.title, _NAME))
        cases = [
            _evaluation_case(view, name),
            *_drift_cases(view.record, name),
            *_gate_cases(view.gates, name, view.record),
        ]
        decided = {}
        for gate in view.gates:
            decided[f"decided after: {gate.name}"] = gate.verdict.decided_after
        drift = {"since_last_run": view.record.drift.change, "drift": view.record.drift.state}
        facts = {"run": record.run, "evaluation": view.record.name, **view.properties(), **drift, **decided}
        properties = _texts(facts)
        suites.append(TestSuite(name, cases, timestamp=started, properties=properties))
    alone = record.judged()[1]
    if alone:
        name = unique("gates without an interview")
        suites.append(TestSuite(name, _gate_cases(alone, name), timestamp=started))
    return _to_schema(to_xml_report_string(suites, prettyprint=False))


class _UniqueNames:
    """Function that makes names unique, since GitLab keeps only the first of equal ones."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)

    def __call__(self, name: str) -> str:
        candidate, n = name, 1
        while candidate in self._taken:
            n += 1
            candidate = f"{name} ({n})"
        self._taken.add(candidate)
        return candidate


def _class(suite: str) -> str:
    """Return the suite as a class name without dots, which readers take for the ends of packages."""
    return "adaptive_eval." + suite.replace(".", "_")


def _evaluation_case(view: ReportView, suite: str) -> Any:
    from junit_xml import TestCase

    evaluation = view.record
    name, facts = view.case()
    lines = [*facts, *evaluation.warnings, *evaluation.notes, evaluation.nodeid]
    text = clean_xml("\n".join(filter(None, lines)), _BODY)
    case = TestCase(name, _class(suite), elapsed_sec=evaluation.seconds or None, stdout=text)
    if evaluation.void:
        message = _one_line(f"ERROR {evaluation.void}")
        case.add_error_info(message, message, "void")
    return case


def _drift_cases(evaluation: EvaluationRecord, suite: str) -> list[Any]:
    """Return the case of a watched evaluation, which fails on an alarm if that fails the run."""
    from junit_xml import TestCase

    drift = evaluation.drift
    if not drift.state:
        return []
    message = _one_line("; ".join(drift.alarms) or drift.news or "no alarm")
    case = TestCase(DRIFT_CASE, _class(suite), stdout=message)
    if drift.fails:
        case.add_failure_info(message, message, "drift")
    return [case]


def _gate_cases(gates: Sequence[GateRecord], suite: str, evaluation: EvaluationRecord | None = None) -> list[Any]:
    from junit_xml import TestCase

    cases = []
    unique = _UniqueNames("interview", "study", DRIFT_CASE)
    for gate in gates:
        outcome, verdict = gate.outcome, gate.verdict
        name = _one_line(_case_name(gate, evaluation), _NAME)
        message = _one_line(verdict.sentence)
        lines = [message, *verdict.notes, words.decided(gate), gate.where]
        body = clean_xml("\n".join(filter(None, lines)), _BODY)
        case = TestCase(unique(name), _class(suite), elapsed_sec=gate.seconds)
        if outcome is Outcome.PASS:
            case.stdout = body
        elif outcome is Outcome.ERROR:
            case.add_error_info(message, body, "error")
        else:
            case.add_failure_info(message, body, outcome.value.lower())
        cases.append(case)
    return cases


def _case_name(gate: GateRecord, evaluation: EvaluationRecord | None) -> str:
    """Return the gate's test and its claim, without numbers and models, so new ones continue the case's history."""
    verdict = gate.verdict
    condition = gate.verdict.condition
    kind, baseline, subject = (str(condition.get(key) or "") for key in ("kind", "name", "subject"))
    metric = str(condition.get("metric") or verdict.metric)
    for bound in ("within", "cap"):
        if condition.get(bound):
            metric += f" {bound}"
    claim = " ".join(filter(None, [metric, kind.replace("_", " "), baseline, subject and f"of {subject}"]))
    test, _, parameter = gate.name.partition("[")
    if not kind or not parameter.startswith(kind.replace("_", "-")):
        test = gate.name  # its parameters are the user's own
    if evaluation is not None and evaluation.series and test.startswith(evaluation.name):  # of a TOML file
        test = evaluation.series + test.removeprefix(evaluation.name)
    if claim:
        return f"{test}: {claim}"
    return test


def _one_line(text: str, limit: int = _MESSAGE) -> str:
    return " ".join(clean_xml(text, limit).split())


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for name, value in facts.items():
        if value not in (None, ""):
            texts[clean_xml(name, _NAME)] = clean_xml(_text(value), _MESSAGE)
    return texts


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _to_schema(xml: str) -> bytes:
    """Return the report without attributes that the schema forbids, with rounded times and indentation."""
    root = ElementTree.fromstring(xml)
    for element in root.iter():
        if element.tag in _ALLOWED:
            for name in set(element.attrib) - _ALLOWED[element.tag]:
                del element.attrib[name]
            if "time" in element.attrib:
                element.set("time", f"{float(element.attrib['time']):.3f}")
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"
