"""Results that the processes of a run exchange, and what the run must account for."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.outputs import replacing

_PAUSE = 0.05  #: Seconds between two checks for a result.


def _is_first(lock: Path) -> bool:
    """Return whether no process has made a file before."""
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Planned(NamedTuple):
    """An interview or a gate that this run must account for; the budget of a gate is 0."""

    nodeid: str
    budget: int
    needs: Sequence[str] = ()


class Selection(NamedTuple):
    """Gates that a run leaves out, and gates that the settings require.

    Args:
        chosen: Whether options such as ``-k`` deselected them, rather than a node id on the command line.
        required: Node ids of the gates that the settings require, by their names there; see `selection.required_gates`.
        near: Similar names of collected gates, for required gates that were not collected.
        shard: Options by which this run is one shard of several; else empty.
    """

    deselected: Sequence[str] = ()
    chosen: bool = False
    required: Mapping[str, list[str]] = {}
    near: Mapping[str, list[str]] = {}
    shard: str = ""


class ResultExchange:
    """A folder of results by node id, on a worker the controller's; there is none if the run has one process."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder: Path | None = None
        if folder:
            self._folder = Path(folder)
        self._owns_folder = False
        self._plan: list[Planned] = []
        self._selection: Selection | None = None
        self._texts: dict[str, str] = {}  #: See `once`.

    def make(self) -> str:
        """Make the folder, on the controller, and return its path."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="adaptive-eval-"))
            self._owns_folder = True
        return str(self._folder)

    def close(self) -> None:
        """Remove the folder if this process made it."""
        if self._owns_folder and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self._owns_folder = None, False

    def _path(self, name: str) -> Path | None:
        if self._folder:
            return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        return None

    def _put(self, name: str, data: Any) -> None:
        if path := self._path(name):
            with replacing(path) as file:
                file.write(json.dumps(data).encode())

    def _get(self, name: str) -> Any:
        path = self._path(name)
        if path is not None and path.exists():
            return json.loads(path.read_text())
        return None

    def once(self, name: str, make: Callable[[], str]) -> str:
        """Return a text that one process makes and all others of the run get.

        Raises:
            ConfigError: Another process could not make it.
        """
        if name in self._texts:
            return self._texts[name]
        lock = self._path(f"{name} lock")
        if lock is None or _is_first(lock):
            try:
                text = make()
            except Exception as error:
                self._put(name, {"fault": str(error)})
                raise
            self._put(name, {"made": text})
        else:
            self.wait([name])
            exchanged = self._get(name) or {"fault": "the process that should make it has ended"}
            if "fault" in exchanged:
                raise ConfigError(exchanged["fault"])
            text = exchanged["made"]
        self._texts[name] = text
        return text

    def plan(self, planned: list[Planned], selection: Selection) -> None:
        """Publish the interviews and gates that this run must account for, in their order, and its selection."""
        self._plan, self._selection = planned, selection
        self._put("plan", planned)
        self._put("selection", selection)

    def planned(self) -> list[Planned]:
        """Return the planned tests, as `plan` published them."""
        return self._plan or [Planned(*entry) for entry in self._get("plan") or ()]

    def selection(self) -> Selection:
        """Return the selection, as `plan` published it."""
        return self._selection or Selection(*self._get("selection") or ())

    def publish_lines(self, lines: list[str]) -> None:
        """Publish lines for the controller to print."""
        self._put("lines", lines)

    def lines(self) -> list[str]:
        """Return the lines that a worker published by `publish_lines`."""
        lines: list[str] = self._get("lines") or []
        return lines

    def publish(self, nodeid: str, result: dict[str, Any]) -> None:
        """Publish a result."""
        self._put(nodeid, result)

    def result(self, nodeid: str) -> dict[str, Any] | None:
        """Return a published result, or None."""
        data: dict[str, Any] | None = self._get(nodeid)
        return data

    def break_off(self) -> None:
        """Publish that a worker died, so no process waits for its results."""
        self._put("broken", True)

    def wait(self, nodeids: Iterable[str]) -> None:
        """Wait until every result is published, a worker has died, or the controller has ended."""
        missing = set(nodeids)
        while missing and self._folder is not None and self._folder.exists() and not self._get("broken"):
            missing = {nodeid for nodeid in missing if self.result(nodeid) is None}
            if missing:
                clock.sleep(_PAUSE)
