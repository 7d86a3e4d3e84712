"""Registration of kinds by name, the same for this package's modules and for installed plugins.

A module registers what it offers in a tuple ``REGISTERED``.  Modules of this package
are found by their folder, modules of plugins by an entry point of the group.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import TypeVar

from pytest_adaptive_eval.errors import ConfigError

__all__ = ["modules_of", "registered"]

Kind = TypeVar("Kind")


def modules_of(package: str) -> list[ModuleType]:
    """Import and return the modules of a package."""
    folder = import_module(package).__path__
    return [import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(folder)]


def registered(package: str, group: str, kind: type[Kind]) -> Mapping[str, Kind]:
    """Return all registered objects of a kind by their ``name``.

    Parameters
    ----------
    package : str
        Package of this distribution; each of its modules has a tuple ``REGISTERED``.
    group : str
        Entry point group of plugins; each entry point is a module with such a tuple.
    kind : type

    Raises
    ------
    ConfigError
        A plugin cannot be loaded, registers another type, or uses a name that is taken.
    """
    modules = modules_of(package)
    modules += [_load(group, entry.name, entry.value) for entry in entry_points(group=group)]
    objects: dict[str, Kind] = {}
    for module in modules:
        for entry in module.REGISTERED:
            if not isinstance(entry, kind):
                raise ConfigError(
                    f"{module.__name__}: REGISTERED holds {entry!r:.80}, expected objects of {kind.__name__}"
                )
            name = getattr(entry, "name", "")
            if name in objects:
                raise ConfigError(f"{module.__name__}: the {kind.__name__} {name!r} exists already; rename it")
            objects[name] = entry
    return MappingProxyType(objects)


def _load(group: str, plugin: str, target: str) -> ModuleType:
    """Import a plugin's module and check that it registers something."""
    try:
        module = import_module(target)
        module.REGISTERED  # noqa: B018 -- raises AttributeError where there is none
    except Exception as error:
        raise ConfigError(
            f"plugin {plugin!r} of group {group!r}: {target} cannot be used ({type(error).__name__}: {error}); "
            "expected a module with a tuple REGISTERED; mend or uninstall the plugin"
        ) from error
    return module
