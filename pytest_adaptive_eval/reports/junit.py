"""The gate report: JUnit XML that the strictest reader, Jenkins, accepts.

A suite is an interview (a subject on a bank) or a study, a test case a gate, and one
more test case tells whether the interview or study itself can be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.text import clean_xml

__all__ = ["gate_report", "write_gate_report"]

#: Longest name, message and body, in characters: what readers show, and far from their limits on files.
_NAME, _MESSAGE, _BODY = 200, 2_000, 20_000
#: What is told of a quantity of a study.
_OF_QUANTITIES = ("estimate", "low", "high", "error")
#: Attributes that Jenkins' schema knows, of those that the package writes.
_ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
    "testcase": {"name", "classname", "time"},
}


def write_gate_report(record: RunRecord, path: Path) -> None:
    """Write the gate report, replacing what is there in one step.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    write_whole(path, [gate_report(record)], "the gate report")


def gate_report(record: RunRecord) -> bytes:
    """The gate report as UTF-8 XML; the same record gives the same bytes.

    A PASS is a passed test case, FAIL and INCONCLUSIVE are failures (of type
    ``fail`` and ``inconclusive``), ERROR is an error.  The verdict is the
    failure's message and the first line of its text, because readers show
    nothing else.
    """
    from junit_xml import TestSuite, to_xml_report_string

    started = clean_xml(record.started, _NAME)
    groups, alone = words.gates_by_interview(record)
    suites, names = [], _Names()
    for interview, gates in zip(record.interviews, groups, strict=True):
        subject = interview.subject.get("name") or "unnamed subject"
        name = names.unique(_one_line(f"{subject} on {words.bank_name(interview) or 'unnamed bank'}", _NAME))
        cases = [_interview_case(interview, name), *_gate_cases(gates, name)]
        properties = {key: clean_xml(value, _MESSAGE) for key, value in _properties(record, interview).items()}
        suites.append(TestSuite(name, cases, timestamp=started, properties=properties))
    for study, gates in zip(record.studies, words.gates_by_study(record), strict=True):
        name = names.unique(_one_line(f"{study.candidate} in {words.study_name(study)}", _NAME))
        cases = [_study_case(study, name), *_gate_cases(gates, name)]
        facts = {key: clean_xml(value, _MESSAGE) for key, value in _study_properties(record, study).items()}
        suites.append(TestSuite(name, cases, timestamp=started, properties=facts))
    if alone:
        name = names.unique("gates without an interview")
        suites.append(TestSuite(name, _gate_cases(alone, name), timestamp=started))
    return _to_schema(to_xml_report_string(suites, prettyprint=False))


class _Names:
    """Makes names unique: GitLab keeps only the first of those that are the same."""

    def __init__(self, *taken: str) -> None:
        self._seen = set(taken)

    def unique(self, name: str) -> str:
        candidate, n = name, 1
        while candidate in self._seen:
            n += 1
            candidate = f"{name} ({n})"
        self._seen.add(candidate)
        return candidate


def _class(suite: str) -> str:
    """The suite as a class name; readers take a dot for the end of a package."""
    return "adaptive_eval." + suite.replace(".", "_")


def _interview_case(interview: InterviewRecord, suite: str) -> Any:
    from junit_xml import TestCase

    facts = [
        f"asked {words.share(interview)}, {words.stop(interview)}",
        f"ability {words.ability(interview)}, accuracy {words.accuracy(interview)}",
    ]
    if missing := words.missing(interview):
        facts.append(f"no score: {missing}")
    text = clean_xml("\n".join([*facts, *interview.notes, interview.nodeid]), _BODY)
    case = TestCase("interview", _class(suite), elapsed_sec=interview.seconds or None, stdout=text)
    if error := words.void(interview):
        message = _one_line(f"ERROR {error}")
        case.add_error_info(message, message, "void")
    return case


def _study_case(study: StudyRecord, suite: str) -> Any:
    from junit_xml import TestCase

    facts = [words.study_line(study), words.study_cost(study), *study.notes, study.nodeid]
    text = clean_xml("\n".join(filter(None, facts)), _BODY)
    case = TestCase("study", _class(suite), elapsed_sec=study.seconds or None, stdout=text)
    if study.error:
        message = _one_line(f"ERROR {study.error}")
        case.add_error_info(message, message, "void")
    return case


def _study_properties(record: RunRecord, study: StudyRecord) -> dict[str, str]:
    """What was held, and the candidate's quantities."""
    facts: dict[str, Any] = {
        "run": record.run,
        "evaluation": study.name,
        "kind": study.kind,
        "candidate": study.candidate,
        "members": ", ".join(str(member.get("name")) for member in study.members),
        study.unit: study.size,
        f"{study.unit}_that_count": study.asked,
    }
    for metric, rows in words.quantities(study).items():
        for row in rows:
            if row.get("subject") == study.candidate:
                facts |= {metric if n == "estimate" else f"{metric}_{n}": row.get(n) for n in _OF_QUANTITIES}
                rank = row.get("rank")
                facts |= {f"{metric}_rank": rank.get("mean") if isinstance(rank, dict) else None}
    return {clean_xml(name, _NAME): _fact(value) for name, value in facts.items() if value not in (None, "")}


def _gate_cases(gates: Sequence[GateRecord], suite: str) -> list[Any]:
    from junit_xml import TestCase

    cases, names = [], _Names("interview", "study")
    for gate in gates:
        outcome, verdict = words.outcome(gate), gate.verdict
        claim = f"{verdict.get('metric', '')} {verdict.get('requirement', '')}".strip()
        name = _one_line(f"{gate.name}: {claim}" if claim else gate.name, _NAME)
        sentence = str(verdict.get("sentence") or "ERROR the record holds no verdict for this gate")
        message = _one_line(sentence)
        where = f"{gate.file}:{gate.line}" if gate.file else gate.nodeid
        body = clean_xml("\n".join([message, *map(str, verdict.get("notes") or ()), where]), _BODY)
        case = TestCase(names.unique(name), _class(suite))
        if outcome is Outcome.PASS:
            case.stdout = body
        elif outcome is Outcome.ERROR:
            case.add_error_info(message, body, "error")
        else:
            case.add_failure_info(message, body, outcome.value.lower())
        cases.append(case)
    return cases


def _one_line(text: str, limit: int = _MESSAGE) -> str:
    return " ".join(clean_xml(text, limit).split())


def _properties(record: RunRecord, interview: InterviewRecord) -> dict[str, str]:
    """What the suite is about; facts that are not known are left out."""
    facts: dict[str, Any] = {
        "run": record.run,
        "evaluation": interview.name,
        "subject": interview.subject.get("name"),
        "checkpoint": interview.subject.get("checkpoint"),
        "decoding_hash": interview.subject.get("decoding_hash"),
        "bank": interview.bank.get("name"),
        "bank_content_hash": interview.bank.get("content_hash"),
        "scale": interview.bank.get("scale"),
        "seed": interview.policy.get("seed"),
        "theta": interview.theta,
        "standard_error": interview.standard_error,
        "samples": interview.samples,
        "decoding_noise": (interview.decoding_noise or {}).get("error"),
        "asked": interview.asked,
        "scored": interview.scored,
        "bank_size": interview.size,
        "stop_reason": interview.stop,
        "stop": words.stop(interview),
    }
    for prefix, interval in (
        ("accuracy", interview.accuracy),
        ("conformal_accuracy", interview.accuracy_conformal),
        ("model_accuracy", interview.accuracy_model),
    ):
        for name, value in (interval or {}).items():
            facts[prefix if name == "estimate" else f"{prefix}_{name}"] = value
    return {clean_xml(name, _NAME): _fact(value) for name, value in facts.items() if value not in (None, "")}


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_fact, value))
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _to_schema(xml: str) -> bytes:
    """Drop what the schema forbids, round times, indent."""
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
