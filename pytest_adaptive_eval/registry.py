"""Registration of kinds by name, the same for the core, its extensions and installed plugins.

A module registers what it offers in a tuple ``REGISTERED``. Modules of the core are found by their folder. Modules of
`pytest_adaptive_eval.extensions` are found by the last part of the group's name: ``extensions/NAME/verbs`` registers
verbs. Modules of plugins are found by an entry point of the group.
"""

from __future__ import annotations

import functools
import os
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, TypeVar

from pytest_adaptive_eval.errors import ConfigError

Kind = TypeVar("Kind")
EXTENSIONS = "pytest_adaptive_eval.extensions"


class Service(NamedTuple):
    """A function or an object of an extension, imported on first use.

    Args:
        name: Name by which the core asks for it.
        target: ``module:attribute`` of the object.
    """

    name: str
    target: str

    def load(self) -> Any:
        """Import and return the object."""
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)


def modules_of(package: str) -> list[ModuleType]:
    """Import and return the modules of a package."""
    folder = import_module(package).__path__
    return [import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(folder)]


def built_in(package: str | None, group: str) -> list[ModuleType]:
    """Import the modules of the core and of its extensions that register objects of a group, by their last names.

    Args:
        package: Package of the core; each of its modules has a tuple ``REGISTERED``.  None if the core has none.
        group: Group of entry points; its last part names a module or a package of an extension.
    """
    if package:
        modules = modules_of(package)
    else:
        modules = []
    for name, path in _extensions():
        offered = group.rpartition(".")[2]
        for module in pkgutil.iter_modules([path]):
            if module.name == offered:
                where = f"{EXTENSIONS}.{name}.{offered}"
                modules += modules_of(where) if module.ispkg else [import_module(where)]
    return sorted(modules, key=lambda module: module.__name__.rpartition(".")[2])


def registered(package: str | None, group: str, kind: type[Kind]) -> Mapping[str, Kind]:
    """Return all registered objects of a kind by their ``name``.

    Args:
        package: As in `built_in`.
        group: Entry point group of plugins; each entry point is a module with a tuple ``REGISTERED``.
        kind: Class of the objects.

    Raises:
        ConfigError: A plugin cannot be loaded, registers another type, or uses a name that is taken.
    """
    modules = built_in(package, group)
    modules += [_load(group, entry.name, entry.value) for entry in entry_points(group=group)]
    objects = {}
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


def service(name: str, extension: str) -> Any:
    """Return a function or an object that an extension offers to the core.

    Args:
        name: Name of the `Service`.
        extension: Folder of the extension that offers it, named in the error.

    Raises:
        ConfigError: The installation lacks the extension.
    """
    service = _services().get(name)
    if service is None:
        raise ConfigError(
            f"this needs {EXTENSIONS}.{extension}, which this installation lacks: reinstall pytest-adaptive-eval"
        )
    return service.load()


INTERVIEW = Service("bank", "pytest_adaptive_eval.evaluation.interview:INTERVIEW")  #: Kind that asks items of banks.


@functools.cache
def evaluation_services() -> Mapping[str, Service]:
    """Return the loaders of the kinds of evaluations by name: interviews, and what extensions and plugins register."""
    return {"bank": INTERVIEW, "ladder": INTERVIEW, **registered(None, "adaptive_eval.kinds", Service)}


@functools.cache
def _services() -> Mapping[str, Service]:
    return registered(None, "adaptive_eval.services", Service)


def lacking() -> str:
    """Return a sentence for errors about unknown names where the extensions were removed, else an empty text."""
    if find_spec(EXTENSIONS):
        return ""
    return f" (this installation lacks {EXTENSIONS}; reinstall pytest-adaptive-eval)"


def _extensions() -> Iterator[tuple[str, str]]:
    """Yield the names and folders of the extensions, which are not imported; none where they were removed."""
    if spec := find_spec(EXTENSIONS):
        for folder in spec.submodule_search_locations or ():
            for module in pkgutil.iter_modules([folder]):
                yield module.name, os.path.join(folder, module.name)  # noqa: PTH118 -- no pathlib in plain pytest


def _load(group: str, plugin: str, target: str) -> ModuleType:
    """Import a plugin's module and check that it registers something."""
    try:
        module = import_module(target)
        module.REGISTERED  # noqa: B018 -- raises AttributeError where there is none
    except Exception as error:
        raise ConfigError(
            f"plugin {plugin!r} of group {group!r}: {target} cannot be used ({type(error).__name__}: {error}); "
            "expected a module with a tuple REGISTERED; fix or uninstall the plugin"
        ) from error
    return module
