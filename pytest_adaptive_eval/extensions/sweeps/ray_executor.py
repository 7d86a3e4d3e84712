"""Cells as tasks of a Ray cluster."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.sweeps.cell_run import OUTPUT, run_cell
from pytest_adaptive_eval.extensions.sweeps.cells import CellEnd, Job
from pytest_adaptive_eval.extensions.sweeps.checks import Machine, check_room, node_complaints
from pytest_adaptive_eval.extensions.sweeps.settings import ResourceTable

#: Seconds for a node to answer the check before the first cell.
_PROBE = 120.0


class RayExecutor:
    """Tasks of a Ray cluster, whose nodes see the folder of the sweep.

    Args:
        address: Of the cluster; empty to start one on this machine, which ends with this process.
        files: Hash of each file that cells read, empty for one that has only to be there.

    Raises:
        ConfigError: Ray is not installed, the cluster cannot be reached, no node can hold a cell, or a node lacks the
            package, a file or the folder, or has another version of them.
    """

    def __init__(self, needs: ResourceTable, where: str, address: str, folder: Path, files: Mapping[str, str]) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise ConfigError("--ray needs Ray: pip install pytest-adaptive-eval[ray]") from None
        try:
            ray.init(address=address or "local", include_dashboard=None if address else False, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            raise ConfigError(
                f"--ray {address}: no cluster can be reached there ({error}); check the address"
            ) from None
        self._ray: Any = ray
        self._jobs: dict[Any, Job] = {}
        try:
            nodes = self._nodes(needs, where)
            self._check(nodes, folder, files)
        except BaseException:
            ray.shutdown()
            raise
        self._task = ray.remote(run_cell).options(
            num_cpus=needs.cpus, num_gpus=needs.gpus, memory=int(needs.memory * 2**30) or None, max_retries=0
        )

    def _nodes(self, needs: ResourceTable, where: str) -> dict[str, str]:
        """Return the names of the nodes that can hold a cell, by their ids."""
        machines = {}
        for node in self._ray.nodes():
            if node["Alive"]:
                has = node["Resources"]
                gpus = tuple(str(number) for number in range(int(has.get("GPU", 0))))
                name = f"{node['NodeManagerAddress']} ({node['NodeManagerHostname']}, {node['NodeID'][:8]})"
                machines[node["NodeID"]] = Machine(name, has.get("CPU", 0), has.get("memory", 0) / 2**30, gpus)
        check_room(needs, list(machines.values()), where)
        return {key: machine.name for key, machine in machines.items() if not machine.lacks(needs)}

    def _check(self, nodes: Mapping[str, str], folder: Path, files: Mapping[str, str]) -> None:
        """Refuse the cluster if a node that can hold a cell lacks something or has another version of it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        def probe(paths: dict[str, str], version: str) -> tuple[str | None, dict[str, str]]:  # sent by value
            from importlib.metadata import PackageNotFoundError
            from pathlib import Path

            try:
                import pytest_adaptive_eval
            except (ImportError, PackageNotFoundError):
                return None, {}
            there: str = pytest_adaptive_eval.__version__
            if there != version:
                return there, {}
            from pytest_adaptive_eval.extensions.sweeps.checks import file_hashes

            read = [Path(path) for path, digest in paths.items() if digest]
            present = {path: "there" for path, digest in paths.items() if not digest and Path(path).exists()}
            return there, {**present, **file_hashes(read)}

        marker = folder / f".seen-{secrets.token_hex(8)}"
        marker.touch()
        expected = {**files, str(marker): ""}
        try:
            task = self._ray.remote(probe)
            answers = {
                node: task.options(
                    num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
                ).remote(expected, __version__)
                for node in nodes
            }
            complaints: list[str] = []
            for node, answer in answers.items():
                try:
                    version, hashes = self._ray.get(answer, timeout=_PROBE)
                except self._ray.exceptions.RayError as error:
                    complaints.append(f"node {nodes[node]}: it does not answer ({_first_line(error)}); remove it")
                    continue
                sentences = node_complaints(nodes[node], version, hashes, expected)
                complaints += [line.replace(str(marker), f"{folder}, the folder of the sweep") for line in sentences]
        finally:
            marker.unlink()
        if complaints:
            raise ConfigError("nodes that cannot run cells, and none was run:\n  " + "\n  ".join(complaints[:20]))

    def submit(self, job: Job) -> None:
        """Run a cell as soon as there is room."""
        (job.folder / OUTPUT).unlink(missing_ok=True)
        self._jobs[self._task.remote(job)] = job

    def wait(self, seconds: float) -> list[CellEnd]:
        """Return the cells that ended since, after at most so many seconds."""
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._end(reference, self._jobs.pop(reference)) for reference in ready]

    def _end(self, reference: Any, job: Job) -> CellEnd:
        try:
            end: CellEnd = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # such as of a full disk
            return CellEnd(job.key, job.fingerprint, exit_status=3, reason=_first_line(error.cause))
        except self._ray.exceptions.RayError as error:
            return CellEnd(job.key, job.fingerprint, reason=f"its worker or node died ({_first_line(error)})")
        return end

    @property
    def running(self) -> Sequence[str]:
        """Keys of the cells that run now."""
        return [job.key for job in self._jobs.values() if (job.folder / OUTPUT).exists()]

    def close(self) -> None:
        """End all cells that still run; their journals keep their answers."""
        self._ray.shutdown()


def _first_line(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}" if str(error).strip() else repr(error)
