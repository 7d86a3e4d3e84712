"""``adaptive-eval gate``: verdicts on finished logs of other tools."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.logs import add_ids_argument, joined
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, check_writable, parse_share, read, refuse, spare
from pytest_adaptive_eval.cli.past_runs import (
    add_bank_argument,
    add_source_argument,
    bank_paths,
    keep_record,
    named_paths,
    new_id,
    open_run,
    show,
)
from pytest_adaptive_eval.cli.screen import save, say, screen
from pytest_adaptive_eval.cli.settings import ReadingTable, add_reading_arguments
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.text import counted, number
from pytest_adaptive_eval.typed_tables import suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
    from pytest_adaptive_eval.gates.verdict import Verdict
    from pytest_adaptive_eval.types import Array

#: Margin of a comparison when ``--margin`` is omitted, and confidence of each one-sided verdict.
_MARGIN, _CONFIDENCE = 0.02, 0.95
#: Options of logs, and of recorded runs.
_OF_LOGS = (
    *("margin", "at-least", "confidence", "like-questions", "each-task", "must-pass", "on-inconclusive", "json", "ids"),
    *("config", "set"),
)
_OF_RUNS = ("gates", "bank", "output")


def _add_arguments(parser: VerbParser) -> None:
    text = "finished logs of the candidate, LOGS#NAME for one subject of several; with --rescore, a recorded run"
    parser.add_argument("source", metavar="LOGS|RUN", help=text)
    text = "finished logs of the baseline; with --rescore, what its gates call baseline"
    parser.add_argument("--baseline", metavar="LOGS", help=text)
    add = parser.add_argument_group("gates on logs").add_argument
    add("--at-least", metavar="X", type=parse_share, help="least accuracy that passes, such as 0.6 or 60%%")
    text = f"largest loss of accuracy against the baseline that passes ({_MARGIN})"
    add("--margin", metavar="SHARE", type=parse_share, help=text)
    text = "a question that must be right, by id, or all of a task or category; may be repeated"
    add("--must-pass", metavar="NAME", action="append", default=[], help=text)
    add("--each-task", action="store_true", help="judge each task too: ids before the first colon")
    text = "judge on questions like these, treating them as a sample, and not on these alone"
    add("--like-questions", action="store_true", help=text)
    add("--confidence", metavar="C", type=float, help=f"confidence of each one-sided verdict ({_CONFIDENCE})")
    text = "what an undecided gate does (fail)"
    add("--on-inconclusive", choices=("fail", "warn", "pass"), help=text)
    add("--json", metavar="FILE", type=Path, help="write the verdicts as JSON")
    add_ids_argument(add, "the baseline")
    add = parser.add_argument_group("gates of a recorded run").add_argument
    text = "grade the answers of a run again by its banks as they are now, judge them, and keep the result as a run"
    add("--rescore", action="store_true", help=text)
    add("--gates", metavar="FILE.toml", type=Path, help="evaluations whose gates take the place of the run's own")
    add_bank_argument(add, "where the bank of an evaluation is now; by default, where the run found it")
    add("-o", "--output", metavar="FILE", type=Path, help="write the record there and not into the history")
    add_source_argument(add, "history")
    add_reading_arguments(parser, lambda: ReadingTable)


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
    if options.rescore:
        return _rescore(options)
    from pytest_adaptive_eval.gates.finished import FinishedRun

    refuse(options, _OF_RUNS, "goes with --rescore")
    _check_options(options)
    candidate = _read_run(options, Path(options.source))
    baseline = None if options.baseline is None else _read_run(options, Path(options.baseline))
    must_pass = _must_pass(options, candidate)
    verdicts: list[tuple[str, Verdict]] = []
    for pair in _pairs(options, candidate, baseline):
        baselines = {} if baseline is None or pair.baseline is None else {baseline.subject: pair.baseline}
        in_pair = set(pair.items)
        ours = must_pass if pair.whole else [answer for answer in must_pass if answer.item in in_pair]
        finished = FinishedRun(candidate.subject, pair.items, pair.scores, baselines, ours)
        conditions = _conditions(options, baseline, len(pair.items))
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
    if options.baseline is None and options.at_least is None and not options.must_pass:
        raise ConfigError("nothing to judge: give --baseline LOGS, --at-least X, --must-pass NAME, or several")
    if options.baseline is None and options.margin is not None:
        raise ConfigError(f"--margin {options.margin} is a loss against a baseline: give --baseline LOGS")
    if options.json is not None:
        check_writable("--json", options.json)


def _confidence(options: argparse.Namespace) -> float:
    return _CONFIDENCE if options.confidence is None else float(options.confidence)


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


def _conditions(options: argparse.Namespace, baseline: _Run | None, items: int) -> list[Condition]:
    """Return what is judged of so many items; if questions that must pass decide alone, one right answer suffices."""
    from pytest_adaptive_eval.gates.condition import Condition

    shared: dict[str, Any] = {"confidence": _confidence(options), "on_inconclusive": options.on_inconclusive or "fail"}
    conditions = []
    if options.at_least is not None or baseline is None:
        least = 0.5 / items if options.at_least is None else options.at_least
        conditions.append(Condition("accuracy", "at_least", least, **shared))
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
    """Return the scores of both runs on all comparable items, and on each task's."""
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
    """Return the items to judge on: the candidate's, if the baseline has scores of them."""
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
        interval = interval_on_like_questions(pair.scores, pair.baseline, _confidence(options))
        lines.append(
            f"on questions like these: {quantity} {interval.in_words()}, {100 * _confidence(options):.4g} % each side; "
            "--like-questions judges on them"
        )
    return lines


def _accuracy(scores: Array) -> str:
    """Return the mean score and its numerator, for example ``.75 (45 of 60)``."""
    if not len(scores):
        return "unknown"
    return f"{number(float(scores.mean()), 4)} ({scores.sum():g} of {len(scores)})"


def _rescore(options: argparse.Namespace) -> int:
    """Judge a recorded run again; returns the exit code."""
    from pytest_adaptive_eval import clock
    from pytest_adaptive_eval.cli.pytest_settings import trusted_graders
    from pytest_adaptive_eval.cli.rescore import rescore
    from pytest_adaptive_eval.evaluation import recorded_banks
    from pytest_adaptive_eval.evaluation.toml import TomlFile, read_toml

    refuse(options, _OF_LOGS, "is for logs, and not for --rescore")
    writes = {"-o": options.output}
    record = open_run(options.source, options.history, writes)
    paths = bank_paths(options, record)
    spare(writes, [options.gates, options.baseline, *paths.values(), *named_paths(record)])
    folders, now = [Path.cwd()], clock.now()
    graders = trusted_graders(Path.cwd())
    banks = recorded_banks(record, folders, paths, graders, _raise)
    file = read_toml(options.gates) if options.gates else TomlFile([], [], [])
    if options.gates and not file.evaluations:
        raise ConfigError(f"{options.gates}: no evaluation; write [[eval]] (in double brackets) with a bank and gates")
    new = rescore(
        record,
        banks,
        gates=file.evaluations,
        suites=file.suites,
        baseline=options.baseline,
        folders=folders,
        run=new_id(now),
        now=now,
    )
    keep_record(new, options.output, options.history)
    show(new)
    if new.missing:
        screen.note(f"the run had no result from {', '.join(new.missing)}: no copy of it passes")
    return PASSED if new.exit_status == 0 else NOT_PASSED


def _raise(error: Exception) -> None:
    raise error


REGISTERED = (
    Verb(
        "gate",
        "judge finished logs of another tool, or a recorded run again",
        "Judge finished logs of lm-evaluation-harness, Inspect, HELM and others, alone or against a baseline; or, with "
        "--rescore, judge a recorded run again, with corrected keys or other gates. Nothing is asked. Exit codes are "
        "as pytest's: 0 all gates passed, 1 one did not, 4 a mistake of use.",
        _add_arguments,
        _run,
        (
            "gate logs/run.eval --at-least 0.6 --must-pass safety",
            "gate candidate.csv --baseline main.csv --margin 0.02",
            "gate latest --rescore --gates stricter.toml",
        ),
    ),
)
