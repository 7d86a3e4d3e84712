"""Executors of cells: their interface, and processes of this machine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Protocol

from pytest_adaptive_eval.extensions.sweeps.cell_run import run_cell
from pytest_adaptive_eval.extensions.sweeps.cells import CellEnd, Job
from pytest_adaptive_eval.extensions.sweeps.checks import Machine, check_room, this_machine
from pytest_adaptive_eval.extensions.sweeps.settings import ResourceTable


class Executor(Protocol):
    """Executor of a sweep's cells, as many at once as the machines hold."""

    def submit(self, job: Job) -> None:
        """Run a cell as soon as there is room."""

    def wait(self, seconds: float) -> list[CellEnd]:
        """Return the cells that ended since, after at most so many seconds."""

    @property
    def running(self) -> Sequence[str]:
        """Keys of the cells that run now."""

    def close(self) -> None:
        """End all cells that still run; their journals keep their answers."""


class LocalExecutor:
    """Processes of this machine.

    Args:
        jobs: Most cells at once.

    Raises:
        ConfigError: The machine cannot hold a single cell.
    """

    def __init__(
        self, needs: ResourceTable, where: str, jobs: int | None = None, machine: Machine | None = None
    ) -> None:
        machine = machine or this_machine()
        check_room(needs, [machine], where)
        parallel = [int(machine.cpus // needs.cpus)]
        parallel += [len(machine.gpus) // needs.gpus] if needs.gpus else []
        parallel += [int(machine.memory / needs.memory)] if needs.memory else []
        self._free = min([*parallel, *([jobs] if jobs else [])])
        self._needs, self._gpus = needs, list(machine.gpus)
        self._waiting: list[Job] = []
        self._running: dict[str, threading.Thread] = {}
        self._ended: queue.SimpleQueue[tuple[CellEnd, list[str]]] = queue.SimpleQueue()
        self._stop = threading.Event()

    def submit(self, job: Job) -> None:
        """Run a cell as soon as there is room."""
        self._waiting.append(job)
        self._fill()

    def wait(self, seconds: float) -> list[CellEnd]:
        """Return the cells that ended since, after at most so many seconds."""
        ends = []
        try:
            ends.append(self._take(self._ended.get(timeout=seconds)))
            while True:
                ends.append(self._take(self._ended.get_nowait()))
        except queue.Empty:
            self._fill()
            return ends

    def _take(self, ended: tuple[CellEnd, list[str]]) -> CellEnd:
        end, gpus = ended
        self._running.pop(end.key).join()
        self._gpus += gpus
        self._free += 1
        return end

    def _fill(self) -> None:
        while self._free and self._waiting:
            job = self._waiting.pop(0)
            gpus = [self._gpus.pop(0) for _ in range(self._needs.gpus)]
            self._free -= 1
            thread = threading.Thread(target=self._run, args=(job, gpus), daemon=True)
            self._running[job.key] = thread
            thread.start()

    def _run(self, job: Job, gpus: list[str]) -> None:
        try:
            end = run_cell(job, self._stop, {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {})
        except Exception as error:  # such as of a full disk: the cell is not finished, and its answers are kept
            end = CellEnd(job.key, job.fingerprint, exit_status=3, reason=f"{type(error).__name__}: {error}")
        self._ended.put((end, gpus))

    @property
    def running(self) -> Sequence[str]:
        """Keys of the cells that run now."""
        return tuple(self._running)

    def close(self) -> None:
        """End all cells that still run; their journals keep their answers."""
        self._stop.set()
        self._waiting.clear()
        for thread in self._running.values():
            thread.join()
