"""First files of a project: its evaluation, its workflow, and the commands that come next."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.extras import missing_packages
from pytest_adaptive_eval.cli.project import Data, Project
from pytest_adaptive_eval.cli.starts import STARTS, written
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.ties import first_largest

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation.evaluation import Evaluation
    from pytest_adaptive_eval.items.responses import Responses
    from pytest_adaptive_eval.models.kind import ModelKind

CONFIG = "adaptive-eval.toml"
#: Probability of a verdict that the budget is planned for.
_POWER = 0.8
#: Share of a bank that is asked where it is not there yet to plan on.
_SHARE = "20%"
#: Least accuracy that passes until the user sets one, and what it is above guessing at least.
_THRESHOLD, _ABOVE_GUESSING = 0.5, 0.1
#: Task of a model without questions, by whether it reads images.
_TASKS = {False: "addition", True: "icons"}
#: Subjects with which a calibration is worth a try.
_SUBJECTS = 20
#: Questions of the example, and subjects that are compared for the most items that two share.
_EXAMPLES, _COMPARED = 60, 200


@dataclass(slots=True)
class Setup:
    """Findings and files of `adaptive-eval init`.

    Args:
        findings: Sentences about what was found and chosen.
        files: Texts by path relative to the project.
        commands: Commands to run next, in order, in the project's folder.
        extras: Extras of this distribution that these commands need.
    """

    findings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Subject:
    spec: str
    kind: ModelKind
    pictures: bool


def set_up(project: Project, model: str | None = None) -> Setup:
    """Return the first files and commands of a project.

    Args:
        model: Text that names the subject; the one that the project shows when omitted.

    Raises:
        ConfigError: `model` names no kind of subject.
    """
    setup = Setup()
    subject = _subject(project, model, setup)
    runs = {path: log for path in project.logs if (log := _responses(project.root / path, setup, path))}
    data = _data(project, subject, setup)
    if project.evaluations or project.tests:
        names = ", ".join((*project.evaluations, *project.tests)[:4])
        setup.findings.append(f"evaluations are there already: {names}; no other is written")
        setup.commands.append("pytest --adaptive-eval")
    elif subject is not None or data is not None:
        _interview(project, subject, data, runs, setup)
    elif not runs:
        _example(setup)
    return _finished(project, setup, [_gate_command(path, responses) for path, responses in runs.items()])


def start(kind: str, project: Project, models: Sequence[str]) -> Setup:
    """Return the first files and commands of an evaluation that generates its questions.

    Args:
        kind: One of `starts.STARTS`.
        models: Texts that name the models, the candidate first; if empty, the models that the project shows.

    Raises:
        ConfigError: There are too few models or too many, or one names no kind of model.
    """
    from pytest_adaptive_eval.models import resolve

    setup, (fewest, most) = Setup(), STARTS[kind].models
    found = [place.folder for place in sorted(project.checkpoints, key=lambda place: place.written, reverse=True)]
    found += [f"{server.address}#{name}" for server in project.servers for name in server.models]
    chosen = list(models) or found[:fewest]
    if not fewest <= len(chosen) <= most:
        bound = f"at least {fewest}" if len(chosen) < fewest else f"at most {most}"
        raise ConfigError(
            f"{counted(len(chosen), 'model')} for a {kind}, which takes {bound}: name each with --model FOLDER or "
            "--model http://HOST:PORT/v1#MODEL, the candidate first"
        )
    kinds = [resolve(spec, [project.root], chats=kind in ("network", "panel"))[0] for spec in chosen]
    setup.findings += [f"{spec} {'takes part' if n else 'is the candidate'}" for n, spec in enumerate(chosen)]
    setup.findings.append(STARTS[kind].note)
    setup.extras += [model.extra for model in kinds if model.extra]
    setup.files[CONFIG] = written(kind, chosen)
    return _finished(project, setup, ["pytest --adaptive-eval"])


def _finished(project: Project, setup: Setup, commands: Sequence[str]) -> Setup:
    """Return the setup with further commands, the workflow, and the commands that install what is missing."""
    setup.commands += commands
    _add_workflow(project, setup)
    for extra in reversed(dict.fromkeys(setup.extras)):
        if missing_packages(extra):
            setup.commands.insert(0, f'pip install "pytest-adaptive-eval[{extra}]"')
    return setup


def _subject(project: Project, model: str | None, setup: Setup) -> _Subject | None:
    """Return the subject that is named, else the newest checkpoint, else a server that answers."""
    from pytest_adaptive_eval.models import resolve

    spec, pictures = model, True
    if spec is None and project.checkpoints:
        spec, others = _checkpoint(project)
        pictures = any(checkpoint.pictures for checkpoint in project.checkpoints if checkpoint.folder == spec)
        setup.findings.append(
            f"checkpoint {spec}, the last written"
            + (f"; {counted(others, 'other')}: name one with --adaptive-eval-model=FOLDER" if others else "")
        )
    elif spec is None:
        for server in project.servers:
            if server.models:
                spec = f"{server.address}#{server.models[0]}"
                setup.findings.append(f"model {server.models[0]} on the server that {server.found_in} names")
                break
            setup.findings.append(
                f"server {server.address} in {server.found_in}, which does not list its models here: name one with "
                f"adaptive-eval init --model {server.address}#MODEL"
            )
    if spec is None:
        return None
    kind, _ = resolve(spec, [project.root])
    if kind.extra:
        setup.extras.append(kind.extra)
    return _Subject(spec, kind, pictures)


def _checkpoint(project: Project) -> tuple[str, int]:
    """Return the newest checkpoint that can answer the first questions, and the number of others."""
    pictures = bool(project.data) and project.data[0].pictures
    checkpoints = project.checkpoints
    suitable = [checkpoint for checkpoint in checkpoints if checkpoint.pictures == pictures] or checkpoints
    return suitable[0].folder, len(checkpoints) - 1


def _data(project: Project, subject: _Subject | None, setup: Setup) -> Data | None:
    """Return the questions to ask: the first that the subject can read."""
    able = [data for data in project.data if subject is None or subject.pictures or not data.pictures]
    if not able:
        return None
    data, others = able[0], [other.path for other in able[1:]]
    setup.findings.append(
        f"{data.questions} questions in {data.path}" + (f"; also in {', '.join(others[:4])}" if others else "")
    )
    return data


def _responses(source: Path, setup: Setup, path: str) -> Responses | None:
    """Return the responses in logs; None where they cannot be read without a choice."""
    from pytest_adaptive_eval.banks.responses import read_responses

    try:
        responses = read_responses(source)
    except AdaptiveEvalError as error:
        setup.findings.append(f"logs in {path}, which need a choice: {error}")
        return None
    counts = f"{counted(len(responses.subjects), 'subject')} on {counted(len(responses.items), 'item')}"
    setup.findings.append(f"logs in {path}: {counts}")
    return responses


def _interview(
    project: Project,
    subject: _Subject | None,
    data: Data | None,
    runs: Mapping[str, Responses],
    setup: Setup,
) -> None:
    """Add the evaluation of a subject, or of one to be named, and the commands that run it."""
    calibrated = next((path for path, responses in runs.items() if len(responses.subjects) >= _SUBJECTS), None)
    source: dict[str, Any]
    if data is None and calibrated is not None:
        source = {"bank": f"{Path(calibrated).stem}.bank"}
        setup.commands.append(f"adaptive-eval calibrate {shlex.quote(calibrated)} -o {shlex.quote(source['bank'])}")
        setup.files[CONFIG] = _config(source, subject, _SHARE, "of the bank", _THRESHOLD)
    elif data is None:
        assert subject is not None
        task = _TASKS[subject.pictures]
        setup.findings.append(f"no questions: generated ones of the task {task}")
        source = {"task": task, "policy": "decide", "levels": 4, "queries": 60}
        _add_planned(project, source, source, subject, setup)
    elif data.form == "benchmark":
        source = {"bank": f"{Path(data.path).stem}.bank"}
        setup.commands.append(f"adaptive-eval import {shlex.quote(data.path)} -o {shlex.quote(source['bank'])}")
        if data.path.endswith(".parquet"):
            setup.extras.append("parquet")
        with tempfile.TemporaryDirectory() as folder:
            bank = _imported(project.root / data.path, Path(folder) / source["bank"])
            _add_planned(project, source, {"bank": bank}, subject, setup)
    else:
        source = {"bank": data.path}
        _add_planned(project, source, source, subject, setup)
    if subject is not None:
        setup.commands.append("pytest --adaptive-eval")
    else:
        setup.findings.append("no model: name it with --adaptive-eval-model=FOLDER, or http://HOST:PORT/v1#MODEL")
        setup.commands.append(f"adaptive-eval plan {shlex.quote(source['bank'])}")


def _imported(path: Path, bank: Path) -> str:
    """Import questions into a bank folder, to plan on."""
    from pytest_adaptive_eval.banks.writer import write_uncalibrated

    with service("import_items", "importing")(str(path)) as imported:
        write_uncalibrated(bank, imported.items, report={"source": imported.facts})
    return str(bank)


def _add_planned(
    project: Project,
    source: Mapping[str, Any],
    readable: Mapping[str, Any],
    subject: _Subject | None,
    setup: Setup,
) -> None:
    """Add an evaluation whose budget is planned on its bank, which `readable` names."""
    from pytest_adaptive_eval.evaluation.spec import EvalSpec, Settings
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.planning import PLANNING_MARGIN, outlooks

    with tempfile.TemporaryDirectory() as folder:
        evaluation = EvalSpec(readable, CONFIG, project.root).build(Settings(project.root, Path(folder)))
        threshold = _threshold(evaluation)
        condition = Condition("accuracy", "at_least", threshold)
        forecasts = outlooks(condition, evaluation.bank, evaluation.policy)
        worst = forecasts[int(first_largest([outlook.expected for outlook in forecasts]))]
    reason = (
        f"of {len(evaluation.bank)}: {_POWER:.0%} chance of a verdict if the accuracy is {PLANNING_MARGIN:g} from the "
        "threshold"
    )
    setup.files[CONFIG] = _config(source, subject, worst.quantile(_POWER), reason, threshold)


def _threshold(evaluation: Evaluation) -> float:
    """Return an accuracy that separates a model from a guesser."""
    guess = evaluation.bank.guess.mean()
    chances = (1.0 / len(item.choices) if item.choices else 0.0 for item in evaluation.bank.items)
    chance = max(float(guess), sum(chances) / len(evaluation.bank))
    return max(_THRESHOLD, round(chance + _ABOVE_GUESSING, 2))


def _config(
    source: Mapping[str, Any], subject: _Subject | None, budget: int | str, reason: str, threshold: float
) -> str:
    lines = ["# Written by adaptive-eval init, which writes a schema for editors with --schema FILE.", "", "[[eval]]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in source.items()]
    if subject is not None:
        lines.append(f"model = {json.dumps(subject.spec)}")
    return "\n".join(
        [
            *lines,
            f"budget = {json.dumps(budget)}  # {reason}",
            "",
            "[[eval.gate]]",
            'metric = "accuracy"',
            f"at_least = {threshold:g}  # the least accuracy that may pass: set your own",
            "",
            "# Against an earlier run, pytest --adaptive-eval --adaptive-eval-baseline=RECORD:",
            "# [[eval.gate]]",
            '# not_worse_than = "baseline"',
            "# margin = 0.05",
            "",
        ]
    )


def _example(setup: Setup) -> None:
    """Add an example that runs without a model: sums, and recorded answers to them."""
    setup.findings.append(
        "no checkpoint, questions or logs: an example with recorded answers shows a run. Put your questions in place "
        "of example-questions.jsonl and your model in place of the answers, or run init again beside them"
    )
    questions, answers = [], []
    for n in range(_EXAMPLES):
        a, b = 11 + 7 * n % 83, 13 + 5 * n % 79
        name = f"sum-{n + 1}"
        prompt = f"What is {a} + {b}? Answer with the number."
        questions.append({"id": name, "prompt": prompt, "answer": str(a + b), "grader": "numeric"})
        answers.append({"id": name, "text": str(a + b + (n % 8 == 7))})
    for name, rows in (("questions", questions), ("answers", answers)):
        setup.files[f"example-{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    source = {"bank": "example-questions.jsonl", "model": "replay:example-answers.jsonl"}
    setup.files[CONFIG] = _config(source, None, _EXAMPLES, "all of them, at most", _THRESHOLD)
    setup.commands.append("pytest --adaptive-eval")


def _gate_command(path: str, responses: Responses) -> str:
    """Return the command that judges finished logs: the two subjects that share most items, or the first alone."""
    import numpy as np

    scored = (~np.isnan(responses.scores[:_COMPARED])).astype(float)
    shared = np.triu(scored @ scored.T, 1)
    baseline, candidate = map(int, np.unravel_index(shared.argmax(), shared.shape))
    names = responses.subjects
    if shared[baseline, candidate] > 0:
        new, old = (shlex.quote(f"{path}#{names[n]}") for n in (candidate, baseline))
        return f"adaptive-eval gate {new} --baseline {old}"
    name = path if len(names) == 1 else f"{path}#{names[0]}"
    return f"adaptive-eval gate {shlex.quote(name)} --at-least {_THRESHOLD:g}"


def _add_workflow(project: Project, setup: Setup) -> None:
    """Add the workflow of the project's service, which runs the same commands."""
    extras = ",".join(dict.fromkeys(setup.extras))
    install = f'pip install "pytest-adaptive-eval{f"[{extras}]" if extras else ""}"'
    if project.service == "jenkins":
        setup.findings.append("a Jenkinsfile, which is left as it is: add the commands below as a step")
        return
    if project.service == "gitlab":
        path, lines = ".gitlab/adaptive-eval.yml", _gitlab_lines(install, setup.commands)
        setup.findings.append(f"GitLab: add `include: {path}` to .gitlab-ci.yml")
    else:
        path, lines = ".github/workflows/adaptive-eval.yml", _github_lines(install, setup.commands)
    if (project.root / path).exists():
        setup.findings.append(f"{path} is there already, and stays")
    else:
        setup.files[path] = "\n".join(lines) + "\n"


def _github_lines(install: str, commands: list[str]) -> Iterator[str]:
    yield "# Written by adaptive-eval init. Promotion by a baseline: pytest-adaptive-eval,"
    yield "# docs/how-to/gate-in-github-actions.md."
    yield from ("name: adaptive-eval", "", "on:", "  workflow_dispatch:", "", "permissions:", "  contents: read", "")
    yield from ("jobs:", "  gate:", "    runs-on: ubuntu-latest # or the label of a runner that has the model")
    yield from ("    timeout-minutes: 60", "    steps:")
    yield "      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2"
    yield from ("        with:", "          persist-credentials: false")
    yield from ("      - run: |", *(f"          {command}" for command in (install, *commands)))


def _gitlab_lines(install: str, commands: list[str]) -> Iterator[str]:
    yield "# Written by adaptive-eval init. Promotion by a baseline: pytest-adaptive-eval,"
    yield "# docs/how-to/gate-in-gitlab-or-jenkins.md."
    yield from ("adaptive-eval:", "  image: python:3.12", "  rules:", "    - when: manual", "  script:")
    yield from (f"    - {json.dumps(command)}" for command in (install, *commands))
