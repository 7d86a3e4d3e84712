"""Rooms, arrows and circles of the package, read from its source; ``python tests/rooms.py`` prints them.

A room is a folder or a file at the top of the package. An arrow is an import, be it at the top of a module, within a
function, or for type checkers alone.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "pytest_adaptive_eval"
#: Rooms from the ground to the roof.  A room may import from every floor below its own, and from no other room.
#: ``__init__`` names the modules of the public names as texts, and imports none of them by itself.
FLOORS = (
    ("__init__", "api_keys", "clock", "errors", "types"),
    (
        "text",
        "lazy_pattern",
        "deadline",
        "checks",
        "faults",
        "gone",
        "inputs",
        "outputs",
        "process",
        "registry",
        "retry_after",
        "ties",
        "typed_tables",
    ),
    ("mappings", "tables", "worker", "file_hashes"),
    ("irt", "inference"),
    ("items",),
    ("claims", "models"),
    ("cat",),
    ("ladder", "interviewer"),
    ("gates", "tasks"),
    ("records",),
    ("banks", "calibration", "reports"),
    ("evaluation",),
    ("plugin", "cli"),
    ("extensions",),
    ("__main__",),
)


class Arrow(NamedTuple):
    """An import of one module by another, both named by their path in the package, without the suffix."""

    source: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}.py:{self.line} imports {self.target}"


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the files of the package by their path in it, such as ``items/bank`` or ``banks/__init__``."""
    files = sorted(package.rglob("*.py"))
    return {path.relative_to(package).with_suffix("").as_posix(): path for path in files}


def arrows(package: Path = PACKAGE) -> list[Arrow]:
    """Return every import of one module of the package by another, in order."""
    known = modules(package)
    found = []
    for source, path in known.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                if node.level:
                    raise ValueError(f"{path}:{node.lineno}: a relative import; write the whole name")
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                target = _module(name, package.name, known)
                if target not in (None, source):
                    found.append(Arrow(source, str(target), node.lineno))
    return sorted(set(found))


def _module(name: str, package: str, known: Mapping[str, Path]) -> str | None:
    """Return the module that a dotted name is, or is defined in; None outside the package."""
    first, *parts = name.split(".")
    if first != package:
        return None
    for n in (len(parts), len(parts) - 1):
        for path in ("/".join(parts[:n]), "/".join([*parts[:n], "__init__"])):
            if path in known:
                return path
    return None


def room_of(module: str) -> str:
    """Return the room of a module."""
    return module.partition("/")[0]


def floor_of(room: str) -> int:
    """Return the floor of a room, from 1; a room without a floor is an error."""
    for number, rooms in enumerate(FLOORS, 1):
        if room in rooms:
            return number
    raise KeyError(f"the room {room!r} stands on no floor: place it in FLOORS of tests/rooms.py")


def upward(found: list[Arrow]) -> list[Arrow]:
    """Return the arrows to another room that is not on a lower floor."""
    rooms = ((arrow, room_of(arrow.source), room_of(arrow.target)) for arrow in found)
    return [arrow for arrow, here, there in rooms if here != there and floor_of(there) >= floor_of(here)]


def cycle_members(found: list[Arrow]) -> list[list[str]]:
    """Return the groups of modules in which each reaches each other by arrows (strongly connected components)."""
    after: dict[str, list[str]] = {}
    for arrow in found:
        after.setdefault(arrow.source, []).append(arrow.target)
    order: dict[str, int] = {}
    least: dict[str, int] = {}
    stack: list[str] = []
    groups = []

    def visit(module: str) -> None:
        order[module] = least[module] = len(order)
        stack.append(module)
        for target in after.get(module, ()):
            if target not in order:
                visit(target)
            if target in stack:
                least[module] = min(least[module], least[target])
        if least[module] == order[module]:
            group = [stack.pop()]
            while group[-1] != module:
                group.append(stack.pop())
            if len(group) > 1:
                groups.append(sorted(group))

    for module in after:
        if module not in order:
            visit(module)
    return sorted(groups)


def circles(found: list[Arrow]) -> list[list[Arrow]]:
    """Return the arrows within each group of modules that import each other in a circle."""
    return [
        [arrow for arrow in found if arrow.source in group and arrow.target in group] for group in cycle_members(found)
    ]


def lines() -> Iterator[str]:
    """Yield the report: rooms by floor with files, lines and the rooms that they import, then faults and counts."""
    known, found = modules(), arrows()
    length = {module: len(path.read_text("utf-8").splitlines()) for module, path in known.items()}
    for number, rooms in reversed(list(enumerate(FLOORS, 1))):
        for room in rooms:
            files = [module for module in known if room_of(module) == room]
            to = {room_of(arrow.target) for arrow in found if room_of(arrow.source) == room} - {room}
            below = ", ".join(sorted(to, key=lambda room: (floor_of(room), room))) or "none"
            size = sum(length[module] for module in files)
            yield f"floor {number:2}  {room:12} {len(files):3} files {size:6} lines  imports {below}"
    pairs = {(room_of(a.source), room_of(a.target)) for a in found}
    up, rings = upward(found), circles(found)
    yield from (f"upward: {arrow}" for arrow in up)
    for ring in rings:
        yield f"circle of {len({arrow.source for arrow in ring})} files:"
        yield from (f"  {arrow}" for arrow in ring)
    between = sum(here != there for here, there in pairs)
    rooms_ = len(set(itertools.chain(*FLOORS)))
    files_ = len({(arrow.source, arrow.target) for arrow in found})
    yield (
        f"{rooms_} rooms, {len(known)} files, {between} arrows between rooms, {files_} between files, "
        f"{len(up)} upward, {len(rings)} circles"
    )
    offered = sum(size for module, size in length.items() if room_of(module) == "extensions")
    yield f"core {sum(length.values()) - offered} lines, extensions {offered} lines"


if __name__ == "__main__":
    report = list(lines())
    print("\n".join(report))  # noqa: T201  the command's output
    sys.exit(bool(upward(arrows()) or circles(arrows())))
