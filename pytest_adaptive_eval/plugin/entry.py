"""Entry point of the plugin: options, markers and hooks; ``--adaptive-eval`` loads everything else.

This module and what it imports stay free of numpy and of every heavy package, since plain ``pytest`` loads it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval import clock  # noqa: F401 - before a project can freeze time
from pytest_adaptive_eval.plugin import hooks
from pytest_adaptive_eval.plugin.foreign_folders import ForeignFolders, check_arguments
from pytest_adaptive_eval.plugin.names import (
    GATE_MARKER,
    MARKER,
    REFUSAL,
    SUITE_MARKER,
    is_eval_file,
    refuse,
)
from pytest_adaptive_eval.plugin.run_settings import REPORTS, add_options


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register flags and ini settings."""
    config = pluginmanager.getplugin("pytestconfig")
    add_options(parser, list_kinds=config is not None and bool({"-h", "--help"} & {*config.invocation_params.args}))


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that other plugins may implement."""
    pluginmanager.add_hookspecs(hooks)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse foreign conftest files, and remove reports of an earlier run before a conftest can end this one."""
    check_arguments(early_config)
    options = early_config.known_args_namespace
    if options.adaptive_eval and not (options.collectonly or options.help):
        from pytest_adaptive_eval.plugin.report.outputs import clear_outputs

        report_paths = {}
        for name in REPORTS:
            report_paths[name] = getattr(options, f"adaptive_eval_{name}")
        clear_outputs({name: early_config.invocation_params.dir / path for name, path in report_paths.items() if path})


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the rest of the plugin under ``--adaptive-eval``."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(bank, *, name, budget, drift, max_tokens, system, examples, template, ask, judge, samples=1, "
        "repeat, formats, must_pass, wrong_answer, policy='decide', stop='decision', selector, floor, interview, "
        "batch, seed, predict_from='auto', price), or with task, levels, queries, stop_at, size in place of a bank: "
        "ask its items adaptively, one test a question; needs --adaptive-eval",
    )
    config.addinivalue_line(
        "markers",
        f"{GATE_MARKER}(name, *, at_least | at_most | not_worse_than, margin | rank_within | above, metric='accuracy', "
        "within | cap, confidence, probability, on_inconclusive, method, subject): a condition on the evaluation "
        "`name`, which ends as soon as its conditions are decided; the test asserts adaptive_eval.verdicts",
    )
    config.addinivalue_line(
        "markers",
        f"{SUITE_MARKER}: gone; the run says what to write instead",
    )
    config.pluginmanager.register(ForeignFolders(config), "adaptive-eval-foreign-folders")
    if config.getoption("adaptive_eval"):
        _share_cores(getattr(config, "workerinput", {}).get("workercount", 1))
        with _idle_threads_asleep():
            from pytest_adaptive_eval.plugin.activation import activate

        activate(config)
    else:
        config.pluginmanager.register(_Inactive(config), "adaptive-eval-inactive")


def _share_cores(workers: int) -> None:
    """Limit a worker of xdist to its share of the cores, unless the user has set a number of threads.

    The libraries take a thread a core in each process. With several processes there are more threads than cores, which
    wait for each other: a small checkpoint on the CPU then takes twice as long.
    """
    if workers > 1:
        available = getattr(os, "sched_getaffinity", None)
        if available:
            cores = len(available(0))
        else:
            cores = os.cpu_count() or 1
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // workers)))


@contextlib.contextmanager
def _idle_threads_asleep() -> Iterator[None]:
    """Make BLAS threads (one per core) sleep while idle, if numpy is imported in this context.

    They would wait for work in a busy loop first, for as long as importing numpy takes. The setting is read when the
    library is loaded, so nothing of it needs to stay; one of the user's own is left alone.
    """
    name = "OPENBLAS_THREAD_TIMEOUT"
    if name in os.environ:
        yield
        return
    os.environ[name] = "4"  # the least: 2^4 ticks of the processor's clock
    try:
        yield
    finally:
        del os.environ[name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Keep the exit status of a run that did not pass where another plugin returns 0."""
    code = yield
    recorder = config.pluginmanager.get_plugin("adaptive-eval-recorder")
    if code or recorder is None:
        return code
    return recorder.run.exit_status or code


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """End the run for a mistake that a worker reports."""
    if message := (getattr(node, "workeroutput", None) or {}).get(REFUSAL):
        raise pytest.UsageError(message)


_NEEDS = "needs --adaptive-eval"  #: Why a test of an evaluation is skipped.
_REQUIRED = f"{_NEEDS}, and adaptive_eval_required is set: add the flag to this command"


class _Inactive:
    """Hooks of a run without ``--adaptive-eval``, which skip adaptive tests and report what was not run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        for argument in config.invocation_params.args:
            flag = str(argument).partition("=")[0]
            if flag in {f"--adaptive-eval-{name}" for name in REPORTS} and not hasattr(config, "workerinput"):
                raise pytest.UsageError(f"{flag} without --adaptive-eval: nothing would be written, so add the flag")
        self.required = bool(config.getini("adaptive_eval_required"))
        self.files: list[str] = []

    @pytest.fixture
    def adaptive_eval(self) -> None:
        """Skip a gate that requests the results while it runs, such as by a step of pytest-bdd."""
        if self.required:
            pytest.fail(_REQUIRED)
        pytest.skip(_NEEDS)

    def pytest_collect_file(self, file_path: Path) -> None:
        if is_eval_file(file_path):
            self.files.append(str(file_path))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.files:
            from pytest_adaptive_eval.text import guard

            names = ", ".join(os.path.relpath(file) for file in self.files[:3]) + (", ..." if self.files[3:] else "")
            terminalreporter.write_line(guard(f"adaptive-eval: {names} did not run: add --adaptive-eval"))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        adaptive = [
            item
            for item in items
            if any(map(item.get_closest_marker, (MARKER, GATE_MARKER))) or MARKER in getattr(item, "fixturenames", ())
        ]
        if self.required and (adaptive_tests := [*self.files, *(item.nodeid for item in adaptive)]):
            refuse(self.config, items, f"{adaptive_tests[0]} {_REQUIRED}")
        for item in adaptive:
            item.add_marker(pytest.mark.skip(reason=_NEEDS))
