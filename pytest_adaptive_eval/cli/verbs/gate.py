"""``adaptive-eval gate``: verdicts on finished logs of other tools."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.logs import add_ids_argument, joined
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, add_responses_arguments, check_writable, read
from pytest_adaptive_eval.cli.screen import save, say, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.text import counted, number
from pytest_adaptive_eval.typed_tables import suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
    from pytest_adaptive_eval.gates.verdict import Verdict
    from pytest_adaptive_eval.types import Array

#: Margin of a comparison when ``--margin`` is omitted.
_MARGIN = 0.02


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_responses_arguments(parser, "finished logs of the candidate; LOGS#NAME is one subject of several")
    add = parser.add_argument
    add("--baseline", metavar="LOGS", type=Path, help="finished logs of the baseline; LOGS#NAME as above")
    text = f"largest loss of accuracy against the baseline that passes ({_MARGIN})"
    add("--margin", metavar="SHARE", type=float, help=text)
    add("--at-least", metavar="X", type=float, help="least accuracy that passes")
    add("--confidence", metavar="C", type=float, default=0.95, help="of each one-sided verdict (%(default)s)")
    text = "judge on questions like those asked, of which they are a sample; otherwise on these questions alone"
    add("--like-questions", action="store_true", help=text)
    add("--each-task", action="store_true", help="judge each task too: ids before the first colon")
    text = "a question that must be right whatever the accuracy, by id, or all of a task or category; may be repeated"
    add("--must-pass", metavar="NAME", action="append", default=[], help=text)
    text = "what an undecided gate does (%(default)s)"
    add("--on-inconclusive", choices=("fail", "warn", "pass"), default="fail", help=text)
    add("--json", metavar="FILE", type=Path, help="write the verdicts as JSON")
    add_ids_argument(parser)


@dataclass(frozen=True, slots=True)
class _Run:
    """One subject's scores by item, NaN where its log has an item without one."""

    subject: str
    scores: Mapping[str, float]
    questions: Mapping[str, str]
    categories: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Scores of the candidate, shape (n,), and of the baseline if there is one, on the same items: all, or a task's."""

    title: str
    items: Sequence[str]
    scores: Array
    baseline: Array | None
    whole: bool = False


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.gates.finished import FinishedRun

    _check_options(options)
    candidate = _read_run(options, options.source)
    baseline = None if options.baseline is None else _read_run(options, options.baseline)
    conditions = _conditions(options, baseline)
    must_pass = _must_pass(options, candidate)
    verdicts: list[tuple[str, Verdict]] = []
    for pair in _pairs(options, candidate, baseline):
        baselines = {} if baseline is None or pair.baseline is None else {baseline.subject: pair.baseline}
        in_pair = set(pair.items)
        ours = must_pass if pair.whole else [answer for answer in must_pass if answer.item in in_pair]
        finished = FinishedRun(candidate.subject, pair.items, pair.scores, baselines, ours)
        judged = [finished.judge(condition, like_questions=options.like_questions) for condition in conditions]
        say(_lines(pair, candidate, baseline, judged, options))
        verdicts += [(pair.title, verdict) for verdict in judged]
    if options.json is not None:
        subjects = {"candidate": candidate.subject, "baseline": baseline and baseline.subject}
        gates = [{"items": title, **verdict.to_json()} for title, verdict in verdicts]
        save(options.json, {**subjects, "gates": gates})
    return PASSED if all(bool(verdict) for _, verdict in verdicts) else NOT_PASSED


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not fit together, and a file that cannot be written."""
    if options.baseline is None and options.at_least is None:
        if not options.must_pass:
            raise ConfigError("nothing to judge: give --baseline LOGS, --at-least X, --must-pass NAME, or several")
        options.at_least = math.ulp(0.0)  # the named questions decide
    if options.baseline is None and options.margin is not None:
        raise ConfigError(f"--margin {options.margin} is a loss against a baseline: give --baseline LOGS")
    if options.json is not None:
        check_writable("--json", options.json)


def _read_run(options: argparse.Namespace, source: Path) -> _Run:
    """Read the logs of one subject."""
    path, name = _path_and_name(source)
    responses = joined(read(options, path), options.ids, None)
    if name not in responses.subjects:
        if name or len(responses.subjects) > 1:
            named = f"no subject {name!r}" if name else f"{len(responses.subjects)} subjects"
            names = ", ".join(responses.subjects[:12])
            raise ConfigError(f"{path}: {named}; give {path}#NAME with one of {names}")
        name = responses.subjects[0]
    row = responses.subjects.index(name)
    scores = dict(zip(responses.items, responses.scores[row].tolist(), strict=True))
    if responses.administered is not None:  # items that only other subjects were asked do not count
        asked = responses.administered[row]
        scores = {item: score for (item, score), was_asked in zip(scores.items(), asked, strict=True) if was_asked}
    texts = {item: " ".join(question.prompt.split()) for item, question in responses.questions.items()}
    categories = {item: question.category for item, question in responses.questions.items()}
    return _Run(name, scores, texts, categories)


def _path_and_name(source: Path) -> tuple[Path, str]:
    """Return the path of logs and the subject's name, which may have slashes; the name is empty where none is given."""
    text = str(source)
    if not source.exists():
        for match in re.finditer("#", text):
            if (path := Path(text[: match.start()])).exists():
                return path, text[match.end() :]
    return source, ""


def _conditions(options: argparse.Namespace, baseline: _Run | None) -> list[Condition]:
    from pytest_adaptive_eval.gates.condition import Condition

    shared: dict[str, Any] = {"confidence": options.confidence, "on_inconclusive": options.on_inconclusive}
    conditions = []
    if options.at_least is not None:
        conditions.append(Condition("accuracy", "at_least", options.at_least, **shared))
    if baseline is not None:
        margin = _MARGIN if options.margin is None else options.margin
        conditions.append(Condition("accuracy", "not_worse_than", margin, baseline.subject, **shared))
    return conditions


def _must_pass(options: argparse.Namespace, candidate: _Run) -> list[MustPassAnswer]:
    """Return the candidate's answers to the questions that must be right, in the order of its log."""
    import math

    from pytest_adaptive_eval.gates.must_pass import MustPassAnswer

    chosen: set[str] = set()
    for name in options.must_pass:
        found = {name} & candidate.scores.keys() or {
            item for item in candidate.scores if name in (_task(item), candidate.categories.get(item))
        }
        if not found:
            known = [*filter(None, dict.fromkeys(candidate.categories.values())), *candidate.scores]
            raise ConfigError(
                f"--must-pass {name}: neither a question, a task nor a category of {candidate.subject}; "
                f"{suggestion(name, known[:200])}"
            )
        chosen |= found
    answers = [(item, score) for item, score in candidate.scores.items() if item in chosen]
    return [
        MustPassAnswer(item, None, "the log has none") if math.isnan(score) else MustPassAnswer(item, score)
        for item, score in answers
    ]


def _task(item: str) -> str:
    """Return the task of an item, the part of its id before the first colon; empty without one."""
    return item.partition(":")[0] if ":" in item else ""


def _pairs(options: argparse.Namespace, candidate: _Run, baseline: _Run | None) -> list[_Pair]:
    """Return the scores of both runs on all items that can be compared, and on those of each task."""
    import numpy as np

    items = _common(candidate, baseline)

    def pair(title: str, names: Sequence[str]) -> _Pair:
        ours = np.array([candidate.scores[item] for item in names])
        theirs = None if baseline is None else np.array([baseline.scores[item] for item in names])
        return _Pair(title, names, ours, theirs)

    by_task: dict[str, list[str]] = {}
    for item in items:
        by_task.setdefault(_task(item), []).append(item)
    pairs = [replace(pair("all tasks" if len(by_task) > 1 else "", items), whole=True)]
    if options.each_task and len(by_task) > 1:
        pairs += [pair(task or "no task", names) for task, names in by_task.items()]
    return pairs


def _common(candidate: _Run, baseline: _Run | None) -> list[str]:
    """Return the items to judge on: those of the candidate, which the baseline has scores of."""
    import math

    if baseline is None:
        return list(candidate.scores)
    common = [item for item in candidate.scores if not math.isnan(baseline.scores.get(item, math.nan))]
    if not common:
        first, second = next(iter(candidate.scores)), next(iter(baseline.scores))
        raise ResponsesError(
            f"no item of {candidate.subject} has a score of {baseline.subject}: the ids are such as {first!r:.80} and "
            f"{second!r:.80}; give --ids what joins them, or logs of the same tasks"
        )
    if without_score := len(candidate.scores) - len(common):
        screen.note(
            f"left out: {counted(without_score, 'item')} of {candidate.subject} without a score of {baseline.subject}"
        )
    if not_asked := len(baseline.scores.keys() - candidate.scores.keys()):
        screen.note(
            f"left out: {counted(not_asked, 'item')} of {baseline.subject} that {candidate.subject} was not asked"
        )
    other = [
        item
        for item in common
        if item in candidate.questions
        and item in baseline.questions
        and candidate.questions[item] != baseline.questions[item]
    ]
    if other:
        screen.note(
            f"{counted(len(other), 'item')} of {len(common)} had other prompts in the two runs, such as "
            f"{other[0]!r:.80}; "
            "the difference may come from these"
        )
    return common


def _lines(
    pair: _Pair, candidate: _Run, baseline: _Run | None, verdicts: Sequence[Verdict], options: argparse.Namespace
) -> list[str]:
    """Return the lines on one set of items: accuracies, verdicts, and the intervals on like questions."""
    import numpy as np

    from pytest_adaptive_eval.gates.finished import interval_on_like_questions

    scored = ~np.isnan(pair.scores)
    head = f"{f'{pair.title}: ' if pair.title else ''}{candidate.subject}: accuracy {_accuracy(pair.scores[scored])}"
    if missing := int((~scored).sum()):
        head += f", {missing} without a score"
    lines = [head]
    if baseline is not None and pair.baseline is not None:
        gap = pair.scores[scored] - pair.baseline[scored]
        lines.append(
            f"{baseline.subject}: accuracy {_accuracy(pair.baseline)}; the candidate is better on "
            f"{int((gap > 0).sum())} and worse on {int((gap < 0).sum())}"
        )
    lines += [verdict.sentence for verdict in verdicts]
    if not options.like_questions and scored.any():
        quantity = "accuracy" if pair.baseline is None else "difference"
        interval = interval_on_like_questions(pair.scores, pair.baseline, options.confidence)
        lines.append(
            f"on questions like these: {quantity} {number(interval.estimate)} [{number(interval.low)}, "
            f"{number(interval.high)}], {100 * options.confidence:.4g} % each side; --like-questions judges on them"
        )
    return lines


def _accuracy(scores: Array) -> str:
    """Return the mean of scores, with the sum of which it is."""
    if not len(scores):
        return "unknown"
    return f"{number(float(scores.mean()), 4)} ({scores.sum():g} of {len(scores)})"


REGISTERED = (
    Verb(
        "gate",
        "judge finished logs of another tool, alone or against a baseline",
        "Judge finished logs of lm-evaluation-harness, Inspect, HELM and others by the gates of this package. Exit "
        "codes are as pytest's: 0 all gates passed, 1 one did not, 4 a mistake of use.",
        _add_arguments,
        _run,
        ("gate logs/run.eval --at-least 0.6", "gate logs/run.eval --at-least 0.6 --must-pass safety"),
    ),
)
