"""Other people's plugins, alone and together: a run is equal to the run without them, or a usage error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_table import COMBINATIONS, PLUGINS, TOGETHER, Plugin
from small_project import Observed, missing, observe, write_project

pytestmark = pytest.mark.slow

#: pytest's exit code for a mistake of the user's.
USAGE_ERROR = 4


def _need(*distributions: str) -> None:
    if absent := missing(distributions):
        pytest.skip(f"not installed: {', '.join(absent)} (dependency group beside)")


def _check_same_or_refused(seen: Observed, expected: Observed) -> None:
    if seen.exit_code == USAGE_ERROR:
        assert not seen.calls, seen.output
        assert "adaptive-eval" in seen.output, seen.output
        return
    assert not seen.differences(expected), seen.output
    assert not seen.faults(), seen.output


def test_the_undisturbed_project_has_each_outcome(undisturbed: Callable[[str], Observed]) -> None:
    outcomes = {model: [verdict[2] for verdict in undisturbed(model).verdicts] for model in ("sound", "weak")}
    assert outcomes["sound"] == ["PASS"] * 4
    assert "PASS" in outcomes["weak"]
    assert outcomes["weak"].count("PASS") < 4
    assert (undisturbed("sound").exit_code, undisturbed("weak").exit_code) == (0, 1)
    assert undisturbed("sound").promote
    assert not undisturbed("sound").faults()
    assert undisturbed("sound").calls.total() == len(undisturbed("sound").administrations) == 28


@pytest.mark.parametrize("model", ["sound", "weak"])
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_workers(tmp_path: Path, undisturbed: Callable[[str], Observed], model: str, workers: str) -> None:
    _check_same_or_refused(observe(write_project(tmp_path, model), (), [workers]), undisturbed(model))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.id)
def test_one_plugin(tmp_path: Path, undisturbed: Callable[[str], Observed], plugin: Plugin) -> None:
    names = plugin.distributions.split()
    _need(*names)
    seen = observe(write_project(tmp_path, "weak"), names, plugin.switches.split())
    _check_same_or_refused(seen, undisturbed("weak"))


@pytest.mark.parametrize("model", ["sound", "weak"])
@pytest.mark.parametrize("workers", ["", "-n2"])
def test_all_that_work_together(
    tmp_path: Path, undisturbed: Callable[[str], Observed], model: str, workers: str
) -> None:
    names = " ".join(plugin.distributions for plugin in TOGETHER).split()
    _need(*names)
    switches = " ".join([plugin.switches for plugin in TOGETHER] + [workers]).split()
    _check_same_or_refused(observe(write_project(tmp_path, model), names, switches), undisturbed(model))


@pytest.mark.parametrize(
    ("model", "distributions", "switches"),
    COMBINATIONS,
    ids=[" ".join((model, *names, switches)) for model, names, switches in COMBINATIONS],
)
def test_combination(tmp_path: Path, model: str, distributions: tuple[str, ...], switches: str) -> None:
    _need(*distributions)
    seen = observe(write_project(tmp_path, model), distributions, switches.split())
    assert not seen.faults(), seen.output
