"""Run interviews, studies and gates within pytest's own protocol."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.question import Question
from pytest_adaptive_eval.plugin.state import EvaluationNode, RunState, sets_up_only
from pytest_adaptive_eval.plugin.tomlfile import restore_parameters
from pytest_adaptive_eval.text import clean_terminal, relative, shown_address


class RunHooks:
    """Hooks that run interviews and studies before their placeholders, and refuse what must not run again."""

    def __init__(self, state: RunState) -> None:
        self.state = state

    def pytest_report_header(self) -> list[str]:
        """Return what the run asks and where it writes, broken between words, only in an active run."""
        settings, root = self.state.settings, self.state.config.rootpath
        named = [f"{name}={shown_address(model)}" for name, model in settings.models.items()]
        whole = shown_address(settings.model or "")
        model = clean_terminal(", ".join(filter(None, [whole, *named])) or "from the fixture or the TOML file")
        seed = "" if settings.seed is None else f", seed {settings.seed}"
        text = f"adaptive-eval: model {model}{seed}, journal and records in {relative(settings.folder, root)}"
        return told_lines(self.state.config, text)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for other workers' results and hold the interview; then the placeholder or the gate is run.

        This wrapper is registered after those of plugins that time tests (pytest-timeout, faulthandler), so that it is
        outside them: neither waiting nor a whole interview is one test to them. pytest's own wrapper, which records
        warnings, is `tryfirst` and stays outside this one.
        """
        state = self.state
        restore_parameters(item)
        if state.owns(item) and not isinstance(item, Question) and state.places.begin(item.nodeid):
            if state.worker and not sets_up_only(state.config):
                state.exchange.wait([node.nodeid for node in state.needs.get(item, ()) if node.result is None])
            if isinstance(item, EvaluationNode):
                item.administer()
                if item.result is not None and state.worker:
                    state.exchange.publish(item.nodeid, item.result.to_json())
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Keep the exit status of the run where another plugin ends the process with 0."""
        try:
            return (yield)
        except SystemExit as error:
            if error.code:
                raise
            raise pytest.exit.Exception("a plugin ended the session by sys.exit") from error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """Keep the exit status of the run where another plugin ends the process with 0."""
        try:
            return (yield)
        except SystemExit as error:
            if error.code:
                raise
            return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test that runs a second time or elsewhere."""
        if self.state.owns(item):
            self.state.places.check(item.nodeid)


class OwnProtocol:
    """Runs questions, interviews, studies and gates by pytest's own protocol.

    Plugins for flaky tests implement the hook of the protocol to run a failed test again.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run one of our items before any other plugin does."""
        if not self._state.owns(item) or (isinstance(item, Question) and item.interview is None):
            return None
        return self._state.config.pluginmanager.getplugin("runner").pytest_runtest_protocol(item, nextitem)
