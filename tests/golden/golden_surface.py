"""The public surface: names with parameters, hooks, markers, flags, settings, verbs, and what packaging offers."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import json
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from golden_project import ROOT, differences, printed, run, write

#: Names that documents, examples or this repository's own action import from other places than the package itself.
DOCUMENTED = {
    "pytest_adaptive_eval.banks.responses": ("read_format_responses", "read_responses"),
    "pytest_adaptive_eval.calibration": ("fit_map",),
    "pytest_adaptive_eval.calibration.multimodal": ("fit_multimodal",),
    "pytest_adaptive_eval.calibration.multimodal_quality": ("item_quality",),
    "pytest_adaptive_eval.cli": ("main",),
    "pytest_adaptive_eval.evaluation": ("load_model",),
    "pytest_adaptive_eval.core.ladder": ("Ladder", "Settled", "crossing", "difference", "last_above"),
    "pytest_adaptive_eval.core.multimodal_selection": ("FormatInterview",),
    "pytest_adaptive_eval.core.schedule": ("Schedule",),
    "pytest_adaptive_eval.errors": (
        "AdaptiveEvalError", "AdaptiveEvalWarning", "BankError", "ConfigError", "Unscored", "UsageError",
    ),
    "pytest_adaptive_eval.models": ("load_agent", "load_subject"),
    "pytest_adaptive_eval.models.pool": ("AgentPool",),
    "pytest_adaptive_eval.network.declare": ("read_network",),
    "pytest_adaptive_eval.network.hold": ("hold_network",),
    "pytest_adaptive_eval.network.supervision": ("read_labels", "supervisor_agreement"),
    "pytest_adaptive_eval.peers.assessment": ("assess",),
    "pytest_adaptive_eval.peers.settings": ("Difficulty", "PeerSettings"),
    "pytest_adaptive_eval.extensions.exports.rows": (
        "every_eval_ever", "responses_csv", "responses_jsonl", "studies_csv", "studies_jsonl",
    ),
    "pytest_adaptive_eval.extensions.sandbox": ("Sandbox", "same"),
    "pytest_adaptive_eval.tasks": ("Question", "TaskFamily"),
    "pytest_adaptive_eval.tasks.instructions": ("own_texts", "read_texts"),
}  # fmt: skip


def parameters(function: Any) -> list[str]:
    """Return the parameters of a callable, with their kinds and defaults; annotations may change."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    marks = {"POSITIONAL_ONLY": "/", "KEYWORD_ONLY": "*", "VAR_POSITIONAL": "*args", "VAR_KEYWORD": "**kwargs"}
    found = []
    for one in signature.parameters.values():
        mark = marks.get(one.kind.name, "")
        default = "" if one.default is one.empty else f"={_default(one.default)}"
        found.append(f"{one.name}{default} {mark}".strip())
    return found


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return repr(value.value)
    plain = isinstance(value, str | int | float | bool | tuple | frozenset) or value is None
    return repr(value) if plain else "<an object>"


def described(value: Any) -> dict[str, Any]:
    """Return what users may do with a public name: how it is called, its members, and what it inherits from."""
    if not inspect.isclass(value):
        return {"kind": "function", "parameters": parameters(value)} if callable(value) else {"kind": "value"}
    found: dict[str, Any] = {"kind": "class", "members": {}}
    if issubclass(value, BaseException):
        found["bases"] = sorted(
            base.__name__ for base in value.__mro__[1:] if base.__module__ == "builtins" and base is not object
        )
        found["members"] = {}
        return found
    if issubclass(value, enum.Enum):
        found["values"] = {name: repr(member.value) for name, member in value.__members__.items()}
    elif not getattr(value, "_is_protocol", False):
        found["parameters"] = parameters(value)
    fields = {one.name for one in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    inherited = str if issubclass(value, str) else tuple if issubclass(value, tuple) else object
    for name in sorted(set(dir(value)) | fields):
        if name.startswith("_") or (hasattr(inherited, name) and not issubclass(value, enum.Enum)):
            continue
        if issubclass(value, enum.Enum) and (name in value.__members__ or hasattr(enum.StrEnum, name)):
            continue
        member = inspect.getattr_static(value, name, None)
        if name in fields:
            found["members"][name] = "field"
        elif isinstance(member, property):
            found["members"][name] = "property"
        elif callable(getattr(value, name, None)):
            found["members"][name] = parameters(getattr(value, name))
        else:
            found["members"][name] = "attribute"
    return found


def python_names() -> dict[str, Any]:
    """Return the names of the package and those that documents import from elsewhere."""
    package = importlib.import_module("pytest_adaptive_eval")
    found = {"pytest_adaptive_eval": {name: described(getattr(package, name)) for name in package.__all__}}
    for module, names in DOCUMENTED.items():
        loaded = importlib.import_module(module)
        found[module] = {name: described(getattr(loaded, name)) for name in names}
    return found


class _Options:
    """What a plugin adds to pytest's command line and settings."""

    def __init__(self) -> None:
        self.flags: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}

    def getgroup(self, *_: Any, **__: Any) -> _Options:
        return self

    def addoption(self, *names: str, **more: Any) -> None:
        kept = {key: value for key, value in more.items() if key not in ("help", "metavar")}
        kept["type"] = getattr(kept.get("type"), "__name__", None)
        if isinstance(kept.get("action"), type):  # which adds to a list, besides
            kept["action"] = "append"
        self.flags[" ".join(names)] = json.loads(json.dumps(kept))

    def addini(self, name: str, help: str, type: Any = None, default: Any = None, **more: Any) -> None:
        self.settings[name] = {"type": type, "default": default, **more}


def of_pytest() -> dict[str, Any]:
    """Return flags, settings and hooks of the plugin, from its own entry point."""
    (entry,) = entry_points(group="pytest11", name="adaptive_eval")
    plugin = entry.load()
    options = _Options()
    manager = pytest.PytestPluginManager()
    plugin.pytest_addoption(options, manager)
    plugin.pytest_addhooks(manager)
    hooks = {}
    for name in sorted(dir(manager.hook)):
        if name.startswith("pytest_adaptive_eval") and (spec := getattr(manager.hook, name).spec):
            hooks[name] = {"arguments": list(spec.argnames), "firstresult": bool(spec.opts.get("firstresult"))}
    return {"flags": options.flags, "settings": options.settings, "hooks": hooks}


def markers(folder: Path) -> list[str]:
    """Return the markers that the plugin registers, and the fixtures."""
    write(folder, {})
    run(folder, [(folder, "pytest", ["--markers"])])
    found = re.findall(r"@pytest\.mark\.(adaptive_eval\w*)", printed(folder))
    run(folder, [(folder, "pytest", ["--adaptive-eval", "--fixtures", "-v"])])
    return found + sorted(
        f"fixture {name}" for name in ("adaptive_eval", "model") if re.search(rf"^{name}\b", printed(folder), re.M)
    )


def verbs(folder: Path) -> dict[str, Any]:
    """Return the verbs of the command, with their options and positional arguments."""
    write(folder, {})
    (whole,) = _helps(folder, [[]])
    names = re.findall(r"^ {4}([a-z]+)(?: |$)", whole, re.M)
    texts = _helps(folder, [[name] for name in names])
    return {name: _arguments(text) for name, text in zip(names, texts, strict=True)}


def _helps(folder: Path, verbs: list[list[str]]) -> list[str]:
    wide = {"COLUMNS": "4000", "NO_COLOR": "1"}
    codes = run(folder, [(folder, "adaptive-eval", [*verb, "--help"]) for verb in verbs], **wide)
    assert set(codes) == {0}
    return [(folder / f"printed-{number}.txt").read_text() for number in range(len(verbs))]


def _arguments(text: str) -> dict[str, Any]:
    usage = text.split("\n\n")[0].partition("[-h]")[2]
    options = {}
    for line in text.splitlines():
        if head := re.match(r" {2}(-\S.*?)(?: {2,}|$)", line):
            flags = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", re.sub(r"\{.*?\}", "", head[1]))
            choices = re.search(r"\{(.*?)\}", head[1])
            takes = len(head[1].replace(",", " ").split()) > len(flags)
            for flag in flags:
                options[flag] = sorted(choices[1].split(",")) if choices else takes
    places = re.sub(r"\[-[^\]]*\]|\(-[^)]*\)", "", usage).split()
    return {"options": dict(sorted(options.items())), "positional": len([p for p in places if p[0].isalpha()]),
            "optional": len([p for p in places if p[0] == "["])}  # fmt: skip


def packaging() -> dict[str, Any]:
    """Return extras, commands, entry points and the least Python, which installations name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "name": project["name"],
        "extras": sorted(project["optional-dependencies"]),
        "scripts": sorted(project["scripts"]),
        "entry points": {group: sorted(names) for group, names in project["entry-points"].items()},
        "requires-python": project["requires-python"],
    }


def compare(before: Any, now: Any) -> None:
    """Fail where a part of the surface is gone or changed, or new and not stored."""
    found = differences(before, json.loads(json.dumps(now)))
    assert not found, "the public surface changed:\n" + "\n".join(found[:40])


def surface(folder: Path) -> dict[str, Any]:
    """Return all of it."""
    return {
        **python_names(),
        "pytest": of_pytest(),
        "markers": markers(folder),
        "verbs": verbs(folder / "verbs"),
        "package": packaging(),
    }
