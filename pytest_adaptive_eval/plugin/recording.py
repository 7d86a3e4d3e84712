"""An interview's record, put together at its end."""

from __future__ import annotations

import ast
import importlib
import inspect
import sysconfig
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest_adaptive_eval
from pytest_adaptive_eval.baseline import BaselineFile
from pytest_adaptive_eval.config import Evaluation
from pytest_adaptive_eval.core.conditions import Condition
from pytest_adaptive_eval.core.findings import findings
from pytest_adaptive_eval.core.gates import SessionResult
from pytest_adaptive_eval.core.noise import DecodingNoise
from pytest_adaptive_eval.core.record import Administration, InterviewRecord, by_item
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage
from pytest_adaptive_eval.plugin.account import relative

__all__ = ["costs_of", "noise_notes", "recorded", "source_hash"]

#: Where code lies that its version stands for.
_OTHERS = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")),
    Path(pytest_adaptive_eval.__file__).resolve().parent,
)
#: What a record says of its bank from the bank's report.
KEPT = ("task", "category", "twins", "formats", "parts")


def source_hash(test: Callable[..., object], root: Path, graders: Sequence[str]) -> str:
    """Hash of what makes a prompt of an item and a score of an answer, which is not known otherwise.

    The source of the test without its decorators; of the functions, classes and modules of the user's that it names,
    and those of theirs; the plain values that they name; and the modules that grade.
    """
    parts = [_source(importlib.import_module(name)) for name in graders]
    if not hasattr(test, "adaptive_eval_where"):  # else from TOML: the package's own
        if not (source := _source(test)):
            return ""
        parts += [source, *_named(test, root)]
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16] if parts else ""


def _source(code: object) -> str:
    """The source of a function, class or module, from the line after its decorators; empty where there is none."""
    try:
        source = textwrap.dedent(inspect.getsource(code))  # type: ignore[arg-type]
        first = 0 if inspect.ismodule(code) else ast.parse(source).body[0].lineno - 1
    except (OSError, TypeError, SyntaxError):
        return ""
    return "".join(source.splitlines(keepends=True)[first:])


def _named(test: Callable[..., object], root: Path) -> list[str]:
    """What a function names of its module, and what that names: sources of the user's, and plain values."""
    found: dict[str, str] = {}
    seen: set[int] = {id(test)}
    left: list[Any] = [test]
    while left:
        function = inspect.unwrap(left.pop())
        known = getattr(function, "__globals__", {})
        for name in sorted(_names(getattr(function, "__code__", None))):
            value = known.get(name)
            if value is None or id(value) in seen:
                continue
            if type(value) in (str, int, float, bool):
                found[name] = repr(value).replace(str(root), "")  # which is another on another machine
            elif _of_the_user(value):
                seen.add(id(value))
                found[name] = _source(value)
                left += vars(value).values() if inspect.isclass(value) else [value]
    return [f"{name}={found[name]}" for name in sorted(found)]


def _names(code: types.CodeType | None) -> set[str]:
    """Names that code may look up in its module."""
    if code is None:
        return set()
    inner = (_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def _of_the_user(value: object) -> bool:
    """Whether it is code, and neither Python's, nor installed, nor this package's."""
    if not (inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)):
        return False
    try:
        file = Path(inspect.getfile(value)).resolve()
    except (OSError, TypeError):
        return False
    return not any(file.is_relative_to(place) for place in _OTHERS)


def noise_notes(noise: DecodingNoise, identity: SubjectIdentity) -> list[str]:
    """What a reader of any verdict must know of the noise of decoding."""
    notes = [noise.sentence]
    if identity.decoding.get("temperature") == 0:
        notes.append("decoding is greedy, so that answers to an item can differ by device or batch noise only")
    return notes


def recorded(
    evaluation: Evaluation,
    nodeid: str,
    root: Path,
    identity: SubjectIdentity,
    result: SessionResult,
    answers: list[Administration],
    *,
    conditions: Sequence[Condition],
    baselines: Mapping[str, BaselineFile],
    noise: DecodingNoise | None,
    seconds: float,
) -> InterviewRecord:
    """The record of an interview.

    Parameters
    ----------
    evaluation : Evaluation
    nodeid : str
        Of the placeholder.
    root : Path
        Folder that the bank's path is told relative to.
    identity : SubjectIdentity
    result : SessionResult
    answers : list of Administration
    conditions : sequence of Condition
        Known before the first question.
    baselines : mapping of str to BaselineFile
        What they compare with.
    noise : DecodingNoise or None
        Where it was measured.
    seconds : float
    """
    bank, items = evaluation.bank, by_item(answers, evaluation.samples)
    record = InterviewRecord(
        name=evaluation.name,
        nodeid=nodeid,
        subject=identity.to_json(),
        bank={
            "name": bank.name,
            "path": relative(evaluation.path, root) if evaluation.path else "",
            "content_hash": bank.content_hash,
            "scale": bank.scale,
            "size": len(bank),
            "calibrated": bank.calibrated,
            "model": bank.model,
            "trusted": bank.report.get("trusted") is not False,
            "calibration_subject": identity.name in bank.subjects,
            **{name: bank.report[name] for name in KEPT if name in bank.report},
        },
        policy={**evaluation.policy.to_json(), "seed": evaluation.seed, "stream": str(evaluation.stream)},
        conditions=[condition.to_json() for condition in conditions],
        seconds=round(seconds, 3),
        samples=evaluation.samples,
        decoding_noise=noise.to_json() if noise else None,
        administrations=answers,
        **findings(result, [a.theta_before or [] for a in items] if bank.calibrated else None),
    )
    record.asked = len(items)  # also those of a batch that was cut off
    if sources := {name: dict(file.source) for name, file in baselines.items() if file.source}:
        record.extra["baselines"] = sources
    return record


def costs_of(spent: Usage, record: InterviewRecord) -> dict[str, Any]:
    """What the questions cost, and choosing them; in FLOPs over those of asking the subject the whole bank once."""
    subject = spent.to_json()
    given = (record.interviewer or {}).get("interviewer") or {}
    interviewer = {name: given[name] for name in subject if name in given}
    found: dict[str, Any] = {"subject": subject, **({"interviewer": interviewer} if interviewer else {})}
    if subject["calls"] and subject["flops"]:
        whole = subject["flops"] / subject["calls"] * record.size
        found["relative"] = (subject["flops"] + interviewer.get("flops", 0.0)) / whole
    return found if subject["calls"] else {}
