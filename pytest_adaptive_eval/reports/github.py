"""Annotations at the gates, a summary, and outputs for later jobs of GitHub Actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.parts import DRIFT_STATES, UNKNOWN
from pytest_adaptive_eval.records.run_record import GateRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.verdict_text import WORST_FIRST, sentence_and_formula
from pytest_adaptive_eval.text import Tell, clean_terminal, counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm

_MOST = 10  #: Most annotations of a kind that GitHub shows of one step.
_TITLE, _MESSAGE = 120, 1_000  #: Columns of a title and of a message; the summary has more.
_SUMMARY = 900_000  #: Bytes of a summary, far from the 1 MiB at which GitHub drops it.
_NO_RECORD = "The run left no record, so the results of its gates are unknown. Its log has the reason."


def annotation_lines(record: RunRecord, *, folder: Path, workspace: Path) -> list[str]:
    """Return one workflow command per gate, errors first.

    A PASS is a notice, a gate that was let through undecided a warning, and any other an error. Of each kind GitHub
    shows ten; the tenth has the number of further ones.

    Args:
        folder: Base of the gates' relative file names.
        workspace: Root of the checkout; a file outside of it is left out.

    Returns:
        Lines without their ends; text of the record is data of its one command.
    """
    kinds: dict[str, list[GateRecord]] = {"error": [], "warning": [], "notice": []}
    for gate in record.gates:
        if gate.outcome is Outcome.PASS:
            kinds["notice"].append(gate)
        elif gate.verdict.allowed:
            kinds["warning"].append(gate)
        else:
            kinds["error"].append(gate)
    lines = []
    for kind, gates in kinds.items():
        if len(gates) <= _MOST:
            listed = gates
        else:
            listed = gates[: _MOST - 1]
        lines += [_annotation(kind, record, gate, folder, workspace) for gate in listed]
        more = len(gates) - len(listed)
        if more:
            lines.append(_command(kind, f"{counted(more, 'more gate')} like these: see the summary", title="and more"))
    for text in record.warnings:
        lines.append(_command("warning", clean_terminal(text, _MESSAGE), title="promotion"))
    for evaluation in record.evaluations:
        if evaluation.drift.state == UNKNOWN:
            text = f"{evaluation.name}: {evaluation.drift.news}"
            lines.append(_command("notice", clean_terminal(text, _MESSAGE), title="drift"))
    return lines


def _annotation(kind: str, record: RunRecord, gate: GateRecord, folder: Path, workspace: Path) -> str:
    text, formula = sentence_and_formula(record, gate, ())
    sentences = "; ".join(filter(None, [text.sentence, formula]))
    message = clean_terminal(f"{gate.outcome.value} {sentences}", _MESSAGE)
    title = clean_terminal(f"{gate.outcome.value} {gate.name}", _TITLE, keep_end=True)
    file = _within(gate.file, folder, workspace)
    line = ""
    if file and gate.line > 0:
        line = str(gate.line)
    return _command(kind, message, file=file, line=line, title=title)


def _within(file: str, folder: Path, workspace: Path) -> str:
    """Return the file relative to the workspace; empty for a file outside of it."""
    try:
        if file:
            return (folder / file).resolve().relative_to(workspace.resolve()).as_posix()
        return ""
    except (ValueError, OSError, RuntimeError):  # outside, or no path at all
        return ""


def _command(name: str, data: str, **properties: str) -> str:
    pairs = []
    for key, value in properties.items():
        if value:
            pairs.append(f"{key}={_escaped(value, ':,')}")
    return f"::{name} {','.join(pairs)}::{_escaped(data)}"


def _escaped(text: str, more: str = "") -> str:
    escapes = str.maketrans({c: f"%{ord(c):02X}" for c in f"%\r\n{more}"})
    return text.encode("utf-8", "replace").decode().translate(escapes)


def outputs(record: RunRecord) -> dict[str, str]:
    """Return the values for later jobs: fixed words and numbers, never text of the record.

    Returns:
        ``promote`` is ``true`` or ``false``; ``verdict`` the worst outcome of a gate, ``ERROR`` where an interview gave
        no result, ``NONE`` without a gate; ``passed``, ``failed``, ``inconclusive``, ``errors`` and ``notices``
        count gates; ``drift`` is ``alarm``, ``unknown``, ``none``, or ``off`` where no evaluation is watched, the first
        of these that holds of an evaluation; ``exit-status`` is the run's, empty if it did not come to its end;
        ``asked`` counts questions.
    """
    outcomes = [gate.outcome for gate in record.gates]
    found = set(outcomes)
    if any(evaluation.void for evaluation in record.evaluations):
        found.add(Outcome.ERROR)
    worst = next((outcome.value for outcome in WORST_FIRST if outcome in found), "NONE")
    exit_status = ""
    if record.exit_status is not None:
        exit_status = str(record.exit_status)
    notices = sum(gate.verdict.notice for gate in record.gates)
    asked = sum(interview.asked for interview in record.interviews)
    states = {evaluation.drift.state for evaluation in record.evaluations}
    return {
        "promote": "true" if words.promoted(record) else "false",
        "verdict": worst,
        "passed": str(outcomes.count(Outcome.PASS)),
        "failed": str(outcomes.count(Outcome.FAIL)),
        "inconclusive": str(outcomes.count(Outcome.INCONCLUSIVE)),
        "errors": str(outcomes.count(Outcome.ERROR)),
        "notices": str(notices),
        "drift": next((state for state in DRIFT_STATES if state in states), "off"),
        "exit-status": exit_status,
        "asked": str(asked),
    }


def write_github(
    record: RunRecord,
    environ: Mapping[str, str],
    write: Tell,
    *,
    folder: Path,
    banks: Mapping[str, ItemBank] = MappingProxyType({}),
    alarms: Sequence[Alarm] = (),
) -> None:
    """Write the annotations, summary and outputs of a workflow step.

    Args:
        banks: Available banks by the interview's name; they add questions and expected answers to wrong answers.

    Raises:
        UsageError: A file that the environment names cannot be written.
    """
    workspace = Path(environ.get("GITHUB_WORKSPACE") or folder)
    annotations = annotation_lines(record, folder=folder, workspace=workspace)
    write("".join(f"{line}\n" for line in annotations))
    _append(environ, "GITHUB_OUTPUT", _lines(outputs(record)))
    _append(environ, "GITHUB_STEP_SUMMARY", summary_markdown(record, banks=banks, alarms=alarms, limit=_SUMMARY))


def write_failure(environ: Mapping[str, str], write: Tell) -> None:
    """Write that the record is missing. Later jobs then do not read missing outputs as success.

    Raises:
        UsageError: A file that the environment names cannot be written.
    """
    write(_command("error", _NO_RECORD, title="adaptive evaluation") + "\n")
    _append(environ, "GITHUB_OUTPUT", _lines({"promote": "false", "verdict": Outcome.ERROR.value, "drift": UNKNOWN}))
    _append(environ, "GITHUB_STEP_SUMMARY", f"## 🛑 Not to be promoted\n\n{_NO_RECORD}\n")


def _lines(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _append(environ: Mapping[str, str], name: str, text: str) -> None:
    if not environ.get(name):
        return
    path = Path(environ[name])
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            if file.tell():
                file.write("\n")  # earlier content may lack its last line end
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot write to {name}: {error.strerror or error}; leave out --github where no runner has made "
            "that file"
        ) from error
