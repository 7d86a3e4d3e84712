"""Diagnosis of an installation: packages, the needs of models, and the run that a folder would give."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.cli.extras import extras, missing_packages
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.text import counted, shown_address

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation.toml import TomlEval

_NO_MODEL = "no model: name it with --adaptive-eval-model=FOLDER, or http://HOST:PORT/v1#MODEL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a diagnosis.

    Args:
        state: Absent is what nothing that would run needs.
    """

    state: str
    topic: str
    text: str


def diagnose_machine() -> Iterator[Finding]:
    """Yield what is installed and what this machine can do."""
    yield Finding(
        "ok",
        "versions",
        f"pytest-adaptive-eval {__version__}, Python {platform.python_version()}, "
        f"pytest {version('pytest')}, {platform.system()} {platform.machine()}",
    )
    for extra in extras():
        if missing := missing_packages(extra):
            text = f'needs {", ".join(missing)}: pip install "pytest-adaptive-eval[{extra}]"'
            yield Finding("absent", f"extra {extra}", text)
        else:
            yield Finding("ok", f"extra {extra}", "installed")
    yield _device()
    yield _sandbox()


def _device() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("absent", "device", "torch is not installed: checkpoint folders cannot be loaded")
    try:
        import torch

        if not torch.cuda.is_available():
            return Finding("ok", "device", f"torch {torch.__version__} on the processor, {_memory()}")
        names = ", ".join(
            f"{torch.cuda.get_device_name(n)} ({torch.cuda.get_device_properties(n).total_memory / 1e9:.0f} GB)"
            for n in range(torch.cuda.device_count())
        )
        return Finding("ok", "device", f"torch {torch.__version__} on {names}")
    except (ImportError, OSError, RuntimeError) as error:
        return Finding("fault", "device", f"torch does not load: {str(error).splitlines()[0]:.200}; install it again")


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB of memory"


def _sandbox() -> Finding:
    try:
        tier = service("sandbox", "sandbox").open().tier
    except AdaptiveEvalError as error:
        return Finding("absent", "sandbox", f"code of models is not run here: {error}")
    return Finding("ok", "sandbox", f"code of models runs in the tier {tier}")


def diagnose_model(spec: str, root: Path, options: Mapping[str, Any], *, ask: bool = False) -> Finding:
    """Return whether a model can be interviewed here, and what it needs.

    Args:
        spec: Text that names the model.
        root: Folder that a relative path is relative to.
        ask: Ask a model on a server for one token.
    """
    from pytest_adaptive_eval.models import resolve

    topic = f"model {shown_address(spec)}"
    try:
        kind, located = resolve(spec, [root])
        topic = f"model {kind.label(located)}"
        if kind.extra and (missing := missing_packages(kind.extra)):
            text = f'needs {", ".join(missing)}: pip install "pytest-adaptive-eval[{kind.extra}]"'
            return Finding("fault", topic, text)
        if kind.remote and not ask:
            kind.check_names(located, options)
            return Finding("ok", topic, f"{kind.help}, which was not asked; --ask asks for one token")
        model = kind.examine(located, options)
        if model is not None:
            model.close()
    except AdaptiveEvalError as error:
        return Finding("fault", topic, str(error))
    return Finding("ok", topic, kind.help + _weights(Path(located)))


def _weights(folder: Path) -> str:
    """Return what the weights of a folder take; empty for other models."""
    if not folder.is_dir():
        return ""
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    return f", {size / 1e9:.2g} GB of weights; in single precision on a processor up to {2 * size / 1e9:.2g} GB"


def diagnose_runs(root: Path, model: str | None, *, ask: bool = False) -> Iterator[Finding]:
    """Yield what ``pytest --adaptive-eval`` in a folder would do, and which models it would need.

    Args:
        model: Model that replaces the files' models.
        ask: See `diagnose_model`.
    """
    from pytest_adaptive_eval.cli.project import look_at
    from pytest_adaptive_eval.cli.python_files import pytest_settings

    project = look_at(root)
    models: dict[str, Mapping[str, Any]] = {} if model is None else {model: {}}
    setting = pytest_settings(root).get("adaptive_eval_model")
    setting = setting if isinstance(setting, str) and setting else None
    for name in project.evaluations:
        yield from _evaluations(root, name, model, setting, models)
    for name, tests in project.tests.items():
        text = f"{counted(tests.count, 'interview')}; pytest --adaptive-eval --collect-only lists them"
        yield Finding("ok", name, text)
        if tests.asks_model and model is None:
            yield from _fixture(root, name, name, setting, models)
    if not project.evaluations and not project.tests:
        yield Finding("absent", "evaluations", "none in this folder: adaptive-eval init writes a first one")
    for spec, options in models.items():
        yield diagnose_model(spec, root, options, ask=ask)


def _evaluations(
    root: Path, name: str, model: str | None, setting: str | None, models: dict[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Yield what the evaluations of a TOML file would ask; their models enter `models` with their options."""
    from pytest_adaptive_eval.evaluation.toml import read_toml

    try:
        evaluations = read_toml(root / name).evaluations
    except ConfigError as error:
        yield Finding("fault", name, str(error))
        return
    for evaluation in evaluations:
        yield _run(root, name, evaluation)
        if (spec := model or evaluation.model) is not None:
            models.setdefault(spec, {} if model else evaluation.model_options)
        else:
            yield from _fixture(root, name, f"{name}: {evaluation.spec.name}", setting, models)


def _fixture(
    root: Path, name: str, topic: str, setting: str | None, models: dict[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Yield where the model of an evaluation comes from that names none; one of the settings enters `models`."""
    from pytest_adaptive_eval.cli.python_files import model_fixture

    if (source := model_fixture(root / name, root)) is not None:
        text = f"the model is the fixture `model` of {source.relative_to(root)}, which was not run"
        yield Finding("ok", topic, text)
    elif setting is not None:
        models.setdefault(setting, {})
    else:
        yield Finding("fault", topic, _NO_MODEL)


def _run(root: Path, name: str, evaluation: TomlEval) -> Finding:
    """Return what one evaluation would ask."""
    from pytest_adaptive_eval.evaluation.spec import Settings

    spec = evaluation.spec
    topic = f"{name}: {spec.name}"
    gates = counted(len(evaluation.gates), "gate")
    if not spec.is_interview:
        return Finding("ok", topic, f"kind {spec.table.kind}, {gates}")
    try:
        built = spec.build(Settings(root, root / ".adaptive-eval"))
    except AdaptiveEvalError as error:
        return Finding("fault", topic, str(error))
    built = built.for_gates([gate.condition for gate in evaluation.gates], {})
    state = "calibrated" if built.bank.calibrated else "uncalibrated"
    text = f"at most {built.budget} of {len(built.bank)} questions of the {state} bank {built.bank.name}, {gates}"
    if built.open_budget:
        text += ", which set the budget by default" if evaluation.gates else ", by default"
    if built.must_pass:
        text += f"; {counted(len(built.must_pass), 'question')} must pass"
    return Finding("ok", topic, text)
