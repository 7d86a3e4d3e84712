"""Refuse options of other plugins that lose, repeat or deselect interviews and gates, and find required gates."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from pytest_adaptive_eval.errors import ConfigError


class _Refused(NamedTuple):
    """An option of another plugin that an adaptive run refuses where the module of that plugin is loaded."""

    module: str
    option: str
    flag: str
    active: Callable[[Any], bool]
    effect: str


def _more_than(least: int) -> Callable[[Any], bool]:
    """Return a test for options that are numbers or words such as ``auto``; None is off."""

    def active(value: Any) -> bool:
        try:
            return value is not None and float(value) > least
        except (TypeError, ValueError):
            return True  # such as "auto"

    return active


_PROCESSES = "runs each test in a process of its own, which loses the interviews' answers"
_THREADS = "runs tests in threads, which loses interviews and repeats gates"
_REPEATS = "runs each test several times, which repeats interviews and gates"
_REFUSED = (
    _Refused("pytest_forked", "forked", "--forked", bool, _PROCESSES),
    _Refused("pytest_isolate", "isolate", "--isolate", bool, _PROCESSES),
    _Refused("pytest_isolated", "isolated", "--isolated", bool, _PROCESSES),
    _Refused("pytest_subprocessed", "subprocessed", "--subprocessed", bool, _PROCESSES),
    _Refused("pytest_mp", "use_mp", "--mp", bool, _PROCESSES),
    _Refused("pytest_mproc", "mproc_numcores", "--cores", bool, _PROCESSES),
    _Refused("pytest_parallel", "workers", "--workers", bool, _PROCESSES),
    _Refused("pytest_parallel", "tests_per_worker", "--tests-per-worker", bool, _THREADS),
    _Refused("pytest_concurrent", "concurrent_mode", "--concmode", bool, _THREADS),
    _Refused("pytest_th", "th", "--th", _more_than(0), _THREADS),
    _Refused("pytest_run_parallel", "parallel_threads", "--parallel-threads", _more_than(1), _THREADS),
    _Refused("pytest_run_parallel", "iterations", "--iterations", _more_than(1), _REPEATS),
    _Refused("pytest_repeat", "count", "--count", _more_than(1), _REPEATS),
    _Refused("pytest_flakefinder", "flake_finder_enable", "--flake-finder", bool, _REPEATS),
    _Refused("pytest_loop", "loop", "--loop", _more_than(1), _REPEATS),
    _Refused("pytest_rerun_all", "rerun_time", "--rerun-time", bool, _REPEATS),
    _Refused("pytest_rerun_all", "rerun_iter", "--rerun-iter", _more_than(1), _REPEATS),
    *(
        _Refused("pytest_stress", name, f"--{name}", _more_than(0), _REPEATS)
        for name in ("hours", "minutes", "seconds")
    ),
    _Refused("pytest_xdist_load_testing", "load_test", "--load-test", bool, _REPEATS),
)
#: Markers that do the same for one test, by the module of their plugin.
_MARKERS = {
    "forked": ("pytest_forked", _PROCESSES),
    "isolate": ("pytest_isolate", _PROCESSES),
    "isolated": ("pytest_isolated", _PROCESSES),
    "subprocessed": ("pytest_subprocessed", _PROCESSES),
    "parallel_threads": ("pytest_run_parallel", _THREADS),
    "iterations": ("pytest_run_parallel", _REPEATS),
    "repeat": ("pytest_repeat", _REPEATS),
    "repeated": ("pytest_repeated", _REPEATS),
    "loop": ("pytest_loop", _REPEATS),
}


_FAKES = "pyfakefs"  #: Package of the fixtures that replace the file system.


def check_other_plugins(config: pytest.Config) -> None:
    """Refuse options of other plugins with which no verdict of this run could be trusted.

    Raises:
        pytest.UsageError: One of them is on.
    """
    modules = plugin_modules(config)
    for refused in _REFUSED:
        if refused.module in modules and refused.active(getattr(config.option, refused.option, None)):
            raise pytest.UsageError(
                f"{refused.flag} ({_title(refused.module)}) {refused.effect}: leave it out of a run with "
                "--adaptive-eval, and run other tests with it in a command of their own"
            )
    if "testmon" in modules and _testmon_selects(config.option):
        raise pytest.UsageError(
            "--testmon (pytest-testmon) deselects gates whose code is unchanged, although the checkpoint may have "
            "changed, so they would not judge it: leave it out of a run with --adaptive-eval, or add "
            "--testmon-noselect"
        )


def check_collected(config: pytest.Config, items: Sequence[pytest.Item], interviews: bool) -> None:
    """Refuse plugins that would end the run with an internal error at one of our tests or questions.

    Raises:
        ConfigError: One of them is loaded.
    """
    modules = plugin_modules(config)
    if interviews and "pytest_depends" in modules:
        raise ConfigError(
            "pytest-depends ends the run with an internal error at the first question, since it knows only the tests "
            "that were collected: add -p no:depends to a run with --adaptive-eval"
        )
    for item in items:
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        faked = next((name for name, found in definitions.items() if found[-1].func.__module__.startswith(_FAKES)), "")
        if faked:
            raise ConfigError(
                f"{item.nodeid}: the fixture {faked} (pyfakefs) hides all files, and this run's journal, bank and "
                "model are files: request it in the tests that need it, without autouse"
            )
    other = next((item for item in items if item.path.suffix != ".py"), None)
    if other is not None and "pytest_csv" in modules and getattr(config.option, "csv_path", None):
        raise ConfigError(
            f"{other.nodeid}: --csv (pytest-csv) ends the run with an internal error at a test that is in no Python "
            "file: leave it out of a run with TOML evaluations, and take the run's record or --adaptive-eval-junit=PATH"
        )


def marker_fault(item: pytest.Item) -> str:
    """Return why another plugin's marker on an interview or a gate is refused; empty where none is."""
    markers = [name for name in _MARKERS if item.get_closest_marker(name)]
    modules: Sequence[str] = tuple(plugin_modules(item.config)) if markers else ()
    for name in markers:
        module, effect = _MARKERS[name]
        if module in modules:
            return f"{item.nodeid}: the marker {name} ({_title(module)}) {effect}: remove it from this test"
    return ""


def _testmon_selects(option: Any) -> bool:
    on = any(getattr(option, name, False) for name in ("testmon", "tmnet", "testmon_nocollect", "testmon_forceselect"))
    off = getattr(option, "no-testmon", False) or (
        getattr(option, "testmon_noselect", False) and not getattr(option, "testmon_forceselect", False)
    )
    return on and not off


def plugin_modules(config: pytest.Config) -> set[str]:
    """Return the top-level modules of the plugins that are loaded."""
    plugins = [plugin for _, plugin in config.pluginmanager.list_name_plugin() if plugin is not None]
    return {getattr(plugin, "__name__", type(plugin).__module__).partition(".")[0] for plugin in plugins}


def _title(module: str) -> str:
    return module.replace("_", "-")


class _Sharding(NamedTuple):
    """Options by which a plugin runs one of several parts of the tests: attributes of ``config.option``."""

    modules: tuple[str, ...]
    shards: str
    shard: str


_SHARDINGS = (
    _Sharding(("pytest_split",), "splits", "group"),
    _Sharding(("pytest_shard",), "num_shards", "shard_id"),
    _Sharding(("pytest_test_groups", "pytest_split_tests"), "test-group-count", "test-group"),
)


def shard_of(config: pytest.Config) -> str:
    """Return the options that make this run one shard of several, such as ``--splits=2 --group=1``; else empty."""
    loaded = plugin_modules(config)
    for modules, *names in _SHARDINGS:
        values = [getattr(config.option, name, None) for name in names]
        if loaded.intersection(modules) and isinstance(values[0], int) and values[0] > 1:
            flags = zip(names, values, strict=True)
            return " ".join(f"--{name.replace('_', '-')}={value}" for name, value in flags)
    return ""


def required_gates(names: Iterable[str], gates: Mapping[str, str]) -> dict[str, list[str]]:
    """Find the gates that the settings require.

    Args:
        names: Node ids, or ends of node ids that begin after ``/`` or ``::``. A name without brackets means the gate
            with all its parameters.
        gates: Node id of each collected gate, with the node id of its function, which has no brackets.

    Returns:
        Node ids of each name; none where no gate has the name.

    Raises:
        ConfigError: A name fits two functions.
    """
    nodeids_by_name: dict[str, list[str]] = {}
    for name in names:
        matches = [nodeid for nodeid, function in gates.items() if _fits(name, nodeid) or _fits(name, function)]
        functions = list(dict.fromkeys(gates[nodeid] for nodeid in matches))
        if len(functions) > 1:
            raise ConfigError(
                f"the required gate {name!r} could mean {' or '.join(functions)}: write more of the node id of the one "
                "that is meant"
            )
        nodeids_by_name[name] = matches
    return nodeids_by_name


def near_names(name: str, gates: Mapping[str, str]) -> list[str]:
    """Return up to three names of collected gates that resemble `name`; see `required_gates`."""
    gate_names = {node.rpartition(cut)[2] for nodeids in gates.items() for node in nodeids for cut in ("::", "/")}
    return difflib.get_close_matches(name, sorted(gate_names), 3)


def _fits(name: str, nodeid: str) -> bool:
    return nodeid == name or nodeid.endswith((f"/{name}", f"::{name}"))
