"""Read the settings of a run and register the plugin."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.api_keys import hide_addresses
from pytest_adaptive_eval.errors import ConfigError, UsageError
from pytest_adaptive_eval.evaluation import Settings
from pytest_adaptive_eval.inputs import ANSWERS_FILE, DRIFT_ACTIONS
from pytest_adaptive_eval.plugin.ask.pipeline import PIPELINE, Pipeline
from pytest_adaptive_eval.plugin.collect.collection import Collection
from pytest_adaptive_eval.plugin.collect.failed import failed_arguments
from pytest_adaptive_eval.plugin.collect.fixtures import model_function
from pytest_adaptive_eval.plugin.collect.named_models import empty_flag, split_models
from pytest_adaptive_eval.plugin.exchange import ResultExchange
from pytest_adaptive_eval.plugin.names import MISSING_BASELINE
from pytest_adaptive_eval.plugin.notices import WIDTH, show_log_warnings
from pytest_adaptive_eval.plugin.progress import ProgressHooks
from pytest_adaptive_eval.plugin.report.outputs import check_outputs
from pytest_adaptive_eval.plugin.report.run_protocol import OwnProtocol, ReportHooks, RunHooks
from pytest_adaptive_eval.plugin.report.run_recorder import RunRecorder
from pytest_adaptive_eval.plugin.report.verdicts import VERDICTS, VerdictLog
from pytest_adaptive_eval.plugin.state import STATE, RunState
from pytest_adaptive_eval.text import guard


def _settings_of(config: pytest.Config) -> Settings:
    """Read the settings of a run.  Flags override ini settings."""
    baseline = _text(config, "baseline")
    missing = _text(config, "missing_baseline") or MISSING_BASELINE[0]
    if missing not in MISSING_BASELINE:
        raise ConfigError(f"adaptive_eval_missing_baseline is {missing!r}, expected {', '.join(MISSING_BASELINE)}")
    drift = _text(config, "drift")
    if drift is not None and drift not in DRIFT_ACTIONS:
        raise ConfigError(f"adaptive_eval_drift is {drift!r}, expected {' or '.join(DRIFT_ACTIONS)}")
    if missing == "record" and not (baseline or "").endswith(".json"):
        raise ConfigError(
            "a missing baseline is to be recorded, and no file is named for it: give --adaptive-eval-baseline=FILE.json"
        )
    if (html := _path(config, "html")) is not None:
        from pytest_adaptive_eval.reports.page import need_jinja2

        need_jinja2()
    folder = _path(config, "dir") or config.rootpath / (_text(config, "dir") or ".adaptive-eval")
    model, models = split_models(config.getoption("adaptive_eval_models", None) or ())
    config.option.adaptive_eval_model = model  # without models of single evaluations, which fixtures cannot load
    return Settings(
        root=config.rootpath,
        folder=folder,
        model=config.getini("adaptive_eval_model") if model is None else model,
        models=models,
        baseline=baseline,
        missing_baseline=missing,
        html=html,
        unsafe_code=config.getoption("adaptive_eval_unsafe_code") is not None,
        budget=_text(config, "budget"),
        seed=_seed(config),
        fresh=bool(config.getoption("adaptive_eval_fresh")),
        record=_path(config, "record"),
        junit=_path(config, "junit"),
        graders=tuple(config.getini("adaptive_eval_graders")),
        model_options=_options(config.getini("adaptive_eval_model_options")),
        drift=drift,
        required_gates=tuple(config.getini("adaptive_eval_required_gates")),
        reuse=_reuse(config, folder),
        names_reuse=_flag(config, "reuse") is not None,
        side_by_side=tuple(filter(None, (config.getoption("adaptive_eval_side_by_side") or "").split(","))),
    )


def _flag(config: pytest.Config, name: str) -> str | None:
    value: str | None = config.getoption(f"adaptive_eval_{name}")
    if value == "":
        raise empty_flag(f"--adaptive-eval-{name.replace('_', '-')}")
    return value


def _text(config: pytest.Config, name: str) -> str | None:
    """Return the value of a flag, or else of the ini setting."""
    value = _flag(config, name)
    setting: str | None = config.getini(f"adaptive_eval_{name}")
    if value is None:
        return setting
    return value


def _path(config: pytest.Config, name: str) -> Path | None:
    value = _flag(config, name)
    if value is None:
        return None
    return config.invocation_params.dir / value


def _reuse(config: pytest.Config, folder: Path) -> Path | None:
    """Return the store of answers that the flag names, or that of one's own machine; None in CI without the flag."""
    name = _flag(config, "reuse")
    if name is None:
        asks_all = config.getoption("adaptive_eval_fresh") or os.environ.get("CI")
        if asks_all:
            return None
        return folder / ANSWERS_FILE
    if config.getoption("adaptive_eval_fresh"):
        raise ConfigError("--adaptive-eval-fresh asks everything again, and --adaptive-eval-reuse does not: give one")
    path = config.invocation_params.dir / name
    if "::" in name or path.is_dir() or path.suffix in (".py", ".toml"):
        raise ConfigError(
            f"--adaptive-eval-reuse would keep answers in {name}: put the flag after what is to be collected, or "
            "write --adaptive-eval-reuse=FILE"
        )
    if name == ANSWERS_FILE:
        return folder / ANSWERS_FILE
    return path


def _seed(config: pytest.Config) -> int | None:
    if (text := _text(config, "seed")) is None:
        return None
    try:
        seed = int(text)
    except ValueError:
        raise ConfigError(f"adaptive_eval_seed is {text!r}, expected a whole number") from None
    if seed < 0:
        raise ConfigError(f"the seed is {seed}, expected a whole number of at least 0")
    return seed


def _options(lines: list[str]) -> dict[str, Any]:
    if not lines:
        return {}
    import tomllib

    try:
        return tomllib.loads("\n".join(lines))
    except ValueError as error:  # of TOML, or of a number with thousands of digits
        names = ", ".join(line.partition("=")[0].strip() for line in lines)  # a value may be a secret
        raise ConfigError(
            f'adaptive_eval_model_options sets {names}, expected lines such as key_env = "API_KEY" ({error})'
        ) from None


def activate(config: pytest.Config) -> None:
    """Register the plugin for this run."""
    if not __debug__:
        raise pytest.UsageError(
            "Python was started with -O or PYTHONOPTIMIZE and drops assertions, by which answers are judged right or "
            "wrong: run without"
        )
    named = (*config.invocation_params.args, config.getini("adaptive_eval_baseline"))
    hide_addresses("\n".join(map(str, named)))
    try:
        settings = _settings_of(config)
        check_outputs(config, settings)
        if (failed := _flag(config, "failed")) is not None:
            config.args = failed_arguments(config, failed, settings.folder)
    except UsageError as error:
        raise pytest.UsageError(guard(str(error))) from None
    gc.freeze()  # no imported object becomes garbage, so searching them only costs time
    config.add_cleanup(gc.unfreeze)
    config.stash[WIDTH] = shutil.get_terminal_size().columns
    exchange = ResultExchange(getattr(config, "workerinput", {}).get("adaptive_eval_exchange"))
    state = config.stash[STATE] = RunState(config, settings, exchange)
    if settings.names_reuse and not config.option.collectonly:
        try:
            _ = state.answers  # a damaged file ends the run before the first question
        except UsageError as error:
            raise pytest.UsageError(guard(str(error))) from None
    pipeline = config.stash[PIPELINE] = Pipeline()
    config.add_cleanup(pipeline.close)
    verdicts = config.stash[VERDICTS] = VerdictLog(state)
    show_log_warnings(config)
    register = config.pluginmanager.register
    register(RunHooks(state, verdicts), "adaptive-eval-run")
    register(verdicts, "adaptive-eval-verdicts")
    register(ReportHooks(state, verdicts), "adaptive-eval-reports")
    register(OwnProtocol(state), "adaptive-eval-protocol")
    register(Collection(state), "adaptive-eval-collection")
    register(sys.modules[model_function.__module__], "adaptive-eval-fixtures")
    if not state.worker:
        register(progress := ProgressHooks(config, state.exchange), "adaptive-eval-progress")
        register(RunRecorder(state, progress), "adaptive-eval-recorder")
    # `-p xdist.plugin` and PYTEST_PLUGINS name it by its module
    if any(map(config.pluginmanager.hasplugin, ("xdist", "xdist.plugin"))):
        from pytest_adaptive_eval.plugin.xdist import Distribution

        if config.getoption("dist", "no") == "each" and not config.option.collectonly:
            raise pytest.UsageError(
                "--dist each runs every interview on every worker and asks each question several times: use --dist load"
            )
        register(Distribution(state), "adaptive-eval-xdist")
