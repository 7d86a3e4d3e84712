"""``adaptive-eval gate``: the ordinary run on a finished log, with a bank of its questions."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.cli.logs import add_ids_argument
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, check_writable, parse_share
from pytest_adaptive_eval.cli.past_runs import show
from pytest_adaptive_eval.cli.screen import save, screen
from pytest_adaptive_eval.cli.settings import add_reading_arguments, given_settings
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion
from pytest_adaptive_eval.models.kinds.replay import path_and_name
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import read_table, suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.logs.replay import ReplayTable
    from pytest_adaptive_eval.records.run_record import RunRecord

#: Margin of a comparison when ``--margin`` is omitted, and confidence of each one-sided verdict.
_MARGIN, _CONFIDENCE = 0.02, 0.95
_BASELINE = "baseline"  #: Name of the baseline in gates, and of its file.
_PYTEST = (
    "-m pytest -q -p no:cacheprovider -p pytest_adaptive_eval.plugin.entry -c pytest.ini --adaptive-eval "
    "--adaptive-eval-record=record.json"
)


def _add_arguments(parser: VerbParser) -> None:
    text = "finished logs of the candidate, LOGS#NAME for one subject of several"
    parser.add_argument("source", metavar="LOGS", help=text)
    add = parser.add_argument_group("gates").add_argument
    add("--baseline", metavar="LOGS", help="finished logs of the baseline")
    add("--at-least", metavar="X", type=parse_share, help="least accuracy that passes, such as 0.6 or 60%%")
    text = f"largest loss of accuracy against the baseline that passes ({_MARGIN})"
    add("--margin", metavar="SHARE", type=parse_share, help=text)
    text = "a question that must be right, by id, or all of a task or category; may be repeated"
    add("--must-pass", metavar="NAME", action="append", default=[], help=text)
    add("--each-task", action="store_true", help="judge each task too: ids before the first colon")
    text = "judge on questions like these, treating them as a sample, and not on these alone"
    add("--like-questions", action="store_true", help=text)
    add("--confidence", metavar="C", type=float, default=_CONFIDENCE, help="of each one-sided verdict (%(default)s)")
    text = "what an undecided gate does (fail)"
    add("--on-inconclusive", choices=("fail", "warn", "pass"), default="fail", help=text)
    add("--partial", action="store_true", help="judge a log that is not whole too, with a warning")
    add("--json", metavar="FILE", type=Path, help="write the verdicts as JSON")
    add("-o", "--output", metavar="FOLDER", type=Path, help="keep the evaluation, its bank and its record there")
    add_ids_argument(add, "the baseline")
    add_reading_arguments(parser, _table)


def _table() -> type[ReplayTable]:
    from pytest_adaptive_eval.extensions.logs.replay import ReplayTable

    return ReplayTable


class _Log(NamedTuple):
    """The log of one subject: its path, its scores by item, NaN where missing, and its questions."""

    path: Path
    subject: str
    scores: Mapping[str, float]
    questions: Mapping[str, LoggedQuestion]


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    candidate = _read_log(options.source, settings)
    if options.baseline is None:
        baseline = None
    else:
        baseline = _read_log(options.baseline, settings)
    if baseline is None:
        items = list(candidate.scores)
    else:
        items = _common(candidate, baseline)
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder(options.output, Path(scratch))
        _write(folder, _parts(items, each_task=options.each_task), candidate, settings, options)
        record = _run_pytest(folder, baseline)
        if not options.like_questions:
            record.interviews[0].notes.append(_like_questions(items, candidate, baseline, options.confidence))
        _show(record, folder, options.output)
    if options.json is not None:
        subjects = {"candidate": candidate.subject, "baseline": baseline and baseline.subject}
        gates = []
        for gate in record.gates:
            gates.append({"items": gate.interview, **gate.verdict.to_json()})
        save(options.json, {**subjects, "gates": gates})
    if all(gate.holds for gate in record.gates):
        return PASSED
    return NOT_PASSED


def _show(record: RunRecord, folder: Path, output: Path | None) -> None:
    """Show the verdicts after their answers; logs of CI may be public, and questions are not."""
    from pytest_adaptive_eval.evaluation import recorded_banks
    from pytest_adaptive_eval.reports.verdict_text import Step

    banks = {}
    if not os.environ.get("CI"):
        banks = recorded_banks(record, [folder])
    text = "read all answers on a page"
    if output is None:
        text = "repeat this command with -o judged, and read all answers on a page"
    path_of_record = shlex.quote(str((output or Path("judged")) / "record.json"))
    steps = []
    if not all(gate.holds for gate in record.gates):
        steps = [Step(text, f"adaptive-eval report {path_of_record} --html report.html")]
    show(record, banks, steps)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings by which logs are read; refuse options that do not fit together."""
    if options.baseline is None and options.at_least is None and not options.must_pass:
        raise ConfigError("nothing to judge: give --baseline LOGS, --at-least X, --must-pass NAME, or several")
    if options.baseline is None and options.margin is not None:
        raise ConfigError(f"--margin {options.margin} is a loss against a baseline: give --baseline LOGS")
    if options.json is not None:
        check_writable("--json", options.json)
    if options.ids and Path(options.ids).is_file():
        ids = str(Path(options.ids).absolute())
    else:
        ids = options.ids
    further = {"partial": options.partial, "ids": ids}
    return {**given_settings(options), **{name: value for name, value in further.items() if value}}


def _read_log(source: str, settings: Mapping[str, Any]) -> _Log:
    """Read the log of one subject, and refuse one that is not whole."""
    from pytest_adaptive_eval.extensions.logs.replay import ReplayTable, read_subject

    path, name = path_and_name(source)
    table = read_table(ReplayTable, dict(settings), "--set", strict=False)
    screen.progress(f"reading {path}")
    responses, subject = read_subject(path, name, table, screen.note)
    for warning in responses.check_whole(subject, partial=table.partial):
        screen.note(warning)
    return _Log(path, subject, responses.scores_of(subject), responses.questions)


def _common(candidate: _Log, baseline: _Log) -> list[str]:
    """Return the candidate's items that the baseline has scores of; note the others."""
    # not NaN
    scored = set()
    for item, score in baseline.scores.items():
        if score == score:
            scored.add(item)
    common = [item for item in candidate.scores if item in scored]
    if not common:
        first = next(iter(candidate.scores))
        second = next(iter(baseline.scores))
        raise ResponsesError(
            f"no item of {candidate.subject} has a score of {baseline.subject}: the ids are such as {first!r:.80} and "
            f"{second!r:.80}; give --ids what joins them, or logs of the same tasks"
        )
    for log, other_log in ((candidate, baseline), (baseline, candidate)):
        if without := len(log.scores.keys() - set(common)):
            screen.note(f"left out: {counted(without, 'item')} of {log.subject} without a score of {other_log.subject}")
    _note_other_prompts(common, candidate, baseline)
    return common


def _note_other_prompts(common: Sequence[str], candidate: _Log, baseline: _Log) -> None:
    """Note the items whose prompts, where both logs have them, differ by more than spaces."""
    asked = []
    for item in common:
        if item in candidate.questions and item in baseline.questions:
            asked.append(item)
    prompts = []
    for log in (candidate, baseline):
        prompts.append([log.questions[item].prompt.split() for item in asked])
    if other := [item for item, first, second in zip(asked, *prompts, strict=True) if first != second]:
        screen.note(
            f"{counted(len(other), 'item')} of {len(common)} had other prompts in the two runs, such as "
            f"{other[0]!r:.80}; the difference may come from these"
        )


def _parts(items: Sequence[str], *, each_task: bool) -> dict[str, Sequence[str]]:
    """Return the items to judge by the name of their evaluation: all items, and the items of each task."""
    by_task: dict[str, list[str]] = {}
    for item in items if each_task else ():
        by_task.setdefault(re.sub(r"[^\w.+-]+", "_", _task(item)) or "no task", []).append(item)
    if len(by_task) > 1:
        return {"all tasks": items, **by_task}
    return {"log": items}


def _task(item: str) -> str:
    """Return the task of an item, the part of its id before the first colon; empty without one."""
    if ":" in item:
        return item.partition(":")[0]
    return ""


def _folder(output: Path | None, scratch: Path) -> Path:
    """Return the folder of the evaluation, which is new or empty."""
    if output is None:
        return scratch
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"-o {output} exists and is not an empty folder; name another one")
    output.mkdir(parents=True, exist_ok=True)
    return output


def _write(
    folder: Path,
    parts: Mapping[str, Sequence[str]],
    candidate: _Log,
    settings: Mapping[str, Any],
    options: argparse.Namespace,
) -> None:
    """Write an evaluation of each part with its bank and gates."""
    must_pass = _must_pass(options.must_pass, candidate)
    tables = []
    for number, (name, items) in enumerate(parts.items()):
        if number:
            bank = f"log-{number}.jsonl"
        else:
            bank = "log.jsonl"
        _write_lines(folder / bank, [_item(item, candidate.questions.get(item)) for item in items])
        keys = {
            "name": name,
            "bank": bank,
            "stop": "budget",
            "budget": "100%",
            "model": f"replay:{candidate.path.absolute()}#{candidate.subject}",
            "must_pass": [item for item in items if item in must_pass],
        }
        headed = [("[[eval]]", keys), ("[eval.model_options]", settings)]
        for gate in _gates(options, len(items)):
            headed.append(("[[eval.gate]]", gate))
        for header, values in headed:
            if values:
                tables.append(_table_text(header, values))
    (folder / "adaptive-eval.toml").write_text("\n".join(tables), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _table_text(header: str, values: Mapping[str, Any]) -> str:
    """Return a table of TOML, with texts, numbers and lists written as in JSON."""
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())
    return f"{header}\n{''.join(lines)}"


def _item(item: str, question: LoggedQuestion | None) -> dict[str, Any]:
    """Return the question of a log as an item without a grader: its recorded score counts."""
    from pytest_adaptive_eval.reports.questions import content_text

    row: dict[str, Any] = {"id": item, "meta": {"textless": True}}
    question = question or LoggedQuestion()
    prompt = question.prompt
    if not prompt.strip() and question.messages:
        prompt = content_text(question.messages[-1].get("content"))
    if prompt.strip():
        row["prompt"] = prompt
    if question.answers:
        row["answer"] = list(question.answers)
    return {**row, "category": list(filter(None, (_task(item), question.category)))}


def _gates(options: argparse.Namespace, items: int) -> list[dict[str, Any]]:
    """Return the gates on so many items; if questions that must pass decide alone, one right answer suffices."""
    shared = {"confidence": options.confidence, "on_inconclusive": options.on_inconclusive}
    if options.like_questions:
        shared["method"] = "like-questions"
    gates: list[dict[str, Any]] = []
    if options.at_least is not None or options.baseline is None:
        gates.append({"at_least": 0.5 / items if options.at_least is None else options.at_least, **shared})
    if options.baseline is not None:
        margin = _MARGIN if options.margin is None else options.margin
        gates.append({"not_worse_than": _BASELINE, "margin": margin, **shared})
    return gates


def _must_pass(names: Sequence[str], candidate: _Log) -> set[str]:
    """Return the questions that must be right."""
    categories = {item: question.category for item, question in candidate.questions.items()}
    chosen = set()
    for name in names:
        named_items = []
        for item in candidate.scores:
            if name in (item, _task(item), categories.get(item)):
                named_items.append(item)
        if not named_items:
            known_names = [*filter(None, dict.fromkeys(categories.values())), *candidate.scores]
            raise ConfigError(
                f"--must-pass {name}: neither a question, a task nor a category of {candidate.subject}; "
                f"{suggestion(name, known_names[:200])}"
            )
        chosen |= {name} & set(named_items) or set(named_items)
    return chosen


def _run_pytest(folder: Path, baseline: _Log | None) -> RunRecord:
    """Run the evaluation of a folder, without the plugins and the settings of any project, and return its record."""
    from pytest_adaptive_eval.records.run_files import read_run

    against = []
    if baseline is not None:
        # a detail of its own: the run refuses a baseline whose answers are the model's own
        rows = []
        for item, score in baseline.scores.items():
            rows.append({"id": item, "score": score, "detail": _BASELINE})
        _write_lines(folder / f"{_BASELINE}.jsonl", [row for row in rows if row["score"] == row["score"]])
        against = [f"--adaptive-eval-baseline={_BASELINE}.jsonl#{baseline.subject}"]
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith("PYTEST_"):
            environment[name] = value
    screen.progress("judging")
    done = subprocess.run(
        [sys.executable, *_PYTEST.split(), *against],
        cwd=folder,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if not (folder / "record.json").exists():
        raise ConfigError(f"the log could not be judged: {(done.stdout + done.stderr).strip()[-2000:]}")
    return read_run(folder / "record.json")


def _like_questions(items: Sequence[str], candidate: _Log, baseline: _Log | None, confidence: float) -> str:
    """Return the line on the interval on questions like these."""
    import numpy as np

    from pytest_adaptive_eval.gates.finished import interval_on_like_questions

    scores = np.array([candidate.scores[item] for item in items])
    if baseline is None:
        theirs = None
    else:
        theirs = np.array([baseline.scores[item] for item in items])
    interval = interval_on_like_questions(scores, theirs, confidence)
    quantity = "accuracy" if theirs is None else "difference"
    return (
        f"on questions like these: {quantity} {interval.in_words()}, {100 * confidence:.4g} % each side; "
        "--like-questions judges on them"
    )


REGISTERED = (
    Verb(
        "gate",
        "judge finished logs of another tool",
        "Judge finished logs of lm-evaluation-harness, Inspect, HELM and others, alone or against a baseline, by an "
        "ordinary run on a bank of their questions, in which the log answers. Nothing is asked. Exit codes are as "
        "pytest's: 0 all gates passed, 1 one did not, 4 a mistake of use.",
        _add_arguments,
        _run,
        (
            "gate logs/run.eval --at-least 0.6 --must-pass safety",
            "gate candidate.csv --baseline main.csv --margin 0.02",
            "gate logs/run.eval --at-least 0.6 -o judged",
        ),
    ),
)
