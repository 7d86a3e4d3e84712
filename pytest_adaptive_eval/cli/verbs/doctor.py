"""``adaptive-eval doctor``: what is installed, what a model needs, and what would run."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.cli.extras import extras, missing_packages
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED
from pytest_adaptive_eval.cli.screen import say, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.registry import service

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import EvalSpec
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.models.base import Model


class Finding(NamedTuple):
    """One line of a diagnosis; `state` is ``ok``, ``absent`` or ``fault``, which has to be fixed."""

    state: str
    topic: str
    text: str


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "check this model as well: a checkpoint folder, or http://HOST:PORT/v1#MODEL, which is asked for one token"
    parser.add_argument("--model", metavar="MODEL", help=text)
    text = "ask the first item of each evaluation of a TOML file, which may cost what an item costs"
    parser.add_argument("--one-item", action="store_true", help=text)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.text import clean_terminal, wrap

    collection, files = _collection(options.model)
    evaluations = _evaluations(files)
    findings = list(_machine())
    if options.model:
        findings.append(_model(options.model, evaluations))
    findings.append(collection)
    for spec in evaluations:
        findings += _asked(spec, options.model, one_item=options.one_item)
    for finding in findings:
        text = clean_terminal(f"{finding.topic}: {finding.text}")
        say(wrap(text, width(), " " * 8, first=f"{finding.state:<8}"))
    faults = sum(finding.state == "fault" for finding in findings)
    say(["", f"{faults} to fix before pytest --adaptive-eval can run here" if faults else "nothing to fix"])
    if faults:
        return NOT_PASSED
    return PASSED


def _machine() -> Iterator[Finding]:
    """Yield what is installed and what this machine can do."""
    versions = f"pytest-adaptive-eval {__version__}, Python {platform.python_version()}, pytest {version('pytest')}"
    yield Finding("ok", "versions", f"{versions}, {platform.system()} {platform.machine()}")
    for extra in extras():
        if missing := missing_packages(extra):
            text = f'needs {", ".join(missing)}: pip install "pytest-adaptive-eval[{extra}]"'
            yield Finding("absent", f"extra {extra}", text)
        else:
            yield Finding("ok", f"extra {extra}", "installed")
    yield _device()
    try:
        tier = service("sandbox", "sandbox").open().tier
        yield Finding("ok", "sandbox", f"code of models runs in the tier {tier}")
    except AdaptiveEvalError as error:
        yield Finding("absent", "sandbox", f"code of models is not run here: {error}")


def _device() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("absent", "device", "torch is not installed: checkpoint folders cannot be loaded")
    try:
        import torch

        names = []
        for n in range(torch.cuda.device_count()):
            names.append(torch.cuda.get_device_name(n))
        return Finding("ok", "device", f"torch {torch.__version__} on {', '.join(names) or 'the processor'}")
    except (ImportError, OSError, RuntimeError) as error:
        return Finding("fault", "device", f"torch does not load: {str(error).splitlines()[0]:.200}; install it again")


def _model(spec: str, evaluations: Sequence[EvalSpec]) -> Finding:
    """Return whether a model can be interviewed here; its kind checks all that it needs, without loading weights."""
    from pytest_adaptive_eval.models import resolve
    from pytest_adaptive_eval.text import shown_address

    options: dict[str, Any] = {}
    for evaluation in evaluations:
        options |= evaluation.model_options(spec, Path(), Path())
    try:
        kind, located = resolve(spec, [Path()])
        model = kind.examine(located, options)
        if model is not None:
            model.close()
    except AdaptiveEvalError as error:
        return Finding("fault", f"model {shown_address(spec)}", str(error))
    return Finding("ok", f"model {kind.label(located)}", kind.help)


def _evaluations(files: Iterable[Path]) -> list[EvalSpec]:
    """Return the evaluations of TOML files whose items are asked."""
    from pytest_adaptive_eval.evaluation.toml import read_toml

    specs = []
    for file in files:
        for evaluation in read_toml(file).evaluations:
            if evaluation.spec.asks_items:
                specs.append(evaluation.spec)
    return specs


def _asked(spec: EvalSpec, model: str | None, *, one_item: bool) -> Iterator[Finding]:
    """Yield what asking an item of an evaluation would run, or what asking its first one gave."""
    from pytest_adaptive_eval.evaluation import Settings
    from pytest_adaptive_eval.models import resolve

    here = Path()
    named, options = spec.table.model, spec.table.model_options
    if model is not None:
        named, options = model, spec.model_options(model, here, here)
    if named is None:
        return
    try:
        kind, located = resolve(named, [here, spec.base])
    except AdaptiveEvalError:  # a model that only a hook knows, or a mistake that the collection reports
        return
    topic = f"evaluation {spec.name}"
    try:
        if one_item:
            settings = Settings(here, Path(".adaptive-eval"), model)
            item = spec.build(settings).bank.items[0]
            with contextlib.closing(kind.load(located, options, settings.folder / "cache")) as subject:
                yield _tried(topic, subject, item)
        elif command := kind.command(located, options, "ID"):
            yield Finding("ok", topic, f"the item ID would be run by {command}")
    except AdaptiveEvalError as error:
        yield Finding("fault", topic, str(error))


def _tried(topic: str, subject: Model, item: Item) -> Finding:
    """Return what asking an item gave."""
    from pytest_adaptive_eval.reports.words import measured

    subject.prepare([item])
    (completion,) = subject.answer([item])
    response = completion.response(item)
    if response.score is None:
        return Finding("fault", topic, f"{item.id} has no score: {response.detail}")
    facts = ", ".join([f"score {response.score:.4g}", *measured(completion.measures)])
    return Finding("ok", topic, f"{item.id}: {facts}")


def _collection(model: str | None) -> tuple[Finding, list[Path]]:
    """Return what ``pytest --adaptive-eval --collect-only`` says of this folder with a model, and its TOML files."""
    import pytest

    command = [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", "--collect-only", "-p", "no:cacheprovider"]
    command += [f"--adaptive-eval-model={model}"] if model else []
    process = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    lines = []
    for line in (process.stdout + process.stderr).splitlines():
        if line.strip():
            lines.append(line)
    topic = "pytest --adaptive-eval"
    if process.returncode == 0:
        tests = [line for line in lines if "::" in line]
        files = dict.fromkeys(Path(test.partition("::")[0]) for test in tests)
        finding = Finding("ok", topic, f"collects {', '.join(tests[:6])}{', ...' * (len(tests) > 6)}")
        return finding, [file for file in files if file.suffix == ".toml"]
    if (
        any("no evaluation was found" in line for line in lines)
        or process.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    ):
        text = "no evaluation in this folder: adaptive-eval init writes a first one"
        return Finding("absent", topic, text), []
    errors = [line for line in lines if "ERROR" in line or "adaptive-eval:" in line] or lines[-1:]
    return Finding("fault", topic, errors[-1] if errors else f"exit code {process.returncode}"), []


REGISTERED = (
    Verb(
        "doctor",
        "show what is installed, what a model needs, and what would run",
        "Show which extras are installed, what this machine can run, and which evaluations pytest collects here. Exit "
        "code 1 where something has to be fixed first.",
        _add_arguments,
        _run,
        ("doctor", "doctor --model checkpoints/late", "doctor --one-item"),
    ),
)
