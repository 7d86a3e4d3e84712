"""Refuse plugins that would end the run with an internal error, and find shards and required gates."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pytest

from pytest_adaptive_eval.errors import ConfigError

_FAKES = "pyfakefs"  #: Package of the fixtures that replace the file system.


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
        faked = next((name for name, defs in definitions.items() if defs[-1].func.__module__.startswith(_FAKES)), "")
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


def plugin_modules(config: pytest.Config) -> set[str]:
    """Return the top-level modules of the plugins that are loaded."""
    plugins = []
    for _, plugin in config.pluginmanager.list_name_plugin():
        if plugin is not None:
            plugins.append(plugin)
    return {getattr(plugin, "__name__", type(plugin).__module__).partition(".")[0] for plugin in plugins}


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
        matches = []
        for nodeid, function in gates.items():
            if _fits(name, nodeid) or _fits(name, function):
                matches.append(nodeid)
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
