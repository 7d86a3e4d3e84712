"""Evaluations of the kind ``ablation``: a network beside variants of it, each run with the same seeds.

A quantity of a network, such as its energy, has one value per seed. The change from one variant to another is the mean
of its differences by seed, with Student's interval, which excludes 0 where a paired t-test rejects equality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pytest_adaptive_eval.evaluation.evaluation import Evaluation, Progress
from pytest_adaptive_eval.evaluation.spec import Context, EvalSpec, EvaluationKind, Settings
from pytest_adaptive_eval.extensions.studies.network.declare import recorded
from pytest_adaptive_eval.extensions.studies.network.kind import (
    NetworkStudyTable,
    check_members,
    network_reader,
    notes_on_answers,
    other_members,
    participants,
    roles_of,
    void_reason,
)
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult, energy_error
from pytest_adaptive_eval.extensions.studies.network.topology import Network
from pytest_adaptive_eval.extensions.studies.several import Member, members, model_pool
from pytest_adaptive_eval.gates.quantities import Bounded
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.registry import Service
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import Table, located

CONFIDENCE = 0.975  #: Confidence of each one-sided bound of a change: 95 % two-sided.
AS_WRITTEN = "as written"  #: Name of the network without changes.


def quantities(results: Sequence[NetworkResult]) -> dict[str, list[float]]:
    """Return ``energy``, ``area of NODE`` and ``error_rate of NODE`` by seed, for nodes that all seeds have."""
    values = {"energy": [result.energy.estimate for result in results]}
    for nodes in zip(*(result.nodes for result in results), strict=True):
        name = nodes[0].name
        values[f"area of {name}"] = [node.area for node in nodes]
        values[f"error_rate of {name}"] = [node.error_rate for node in nodes]
    return {name: by_seed for name, by_seed in values.items() if all(map(isfinite, by_seed))}


def over_seeds(values: Sequence[float], confidence: float, error: float = 0.0) -> Interval:
    """Return the mean of at least two values with Student's interval, or that of a known `error` of each if wider."""
    from scipy.special import stdtrit

    n = len(values)
    mean = fmean(values)
    spread = float(stdtrit(n - 1, confidence)) * stdev(values)
    half = max(spread, NormalDist().inv_cdf(confidence) * error) / n**0.5
    return Interval(mean, mean - half, mean + half, confidence, "Student over seeds")


def _sampling_error(results: Sequence[NetworkResult]) -> float:
    """Return the mean standard error of the energies by sampling alone."""
    return fmean(energy_error(result.nodes) or 0.0 for result in results)


@dataclass(frozen=True, slots=True)
class AblationEvaluation(Evaluation):
    """Networks of all variants, as written first, for one seed after the other."""

    kind = "ablation"
    metrics = ("energy",)
    candidate = AS_WRITTEN
    name: str
    subjects: tuple[str, ...]
    networks: tuple[Network, ...]
    roles: tuple[tuple[Member, bool], ...]
    written: Mapping[str, Any]
    memory: int | None
    folder: Path

    @property
    def outlook(self) -> str:
        """A sentence on the variants."""
        return f"{', '.join(self.subjects)}: {counted(len(self.networks), 'network')}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as written, with the first seed."""
        return dict(self.written)

    def void(self, error: str) -> Result:
        """Return the result of variants that could not run."""
        return self.void_result(error, size=len(self.networks), unit="networks")

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run all variants with all seeds."""
        results: list[NetworkResult] = []
        with model_pool(self, self.memory, self.folder / "cache") as pool:
            for network in self.networks:
                results.append(hold_network(network, pool, replies=replies, pictures=self.folder / "pictures"))
                progress(len(results), len(self.networks), "networks")
        several = len(self.subjects)
        values = {}
        errors = []
        notes = []
        for n, name in enumerate(self.subjects):
            by_seed = results[n::several]
            values[name] = quantities(by_seed)
            errors.append(_sampling_error(by_seed))
            for note in notes_on_answers(by_seed[0]):
                notes.append(f"{name}: {note}")
        error = next(filter(None, map(void_reason, results)), "")
        result = replace(
            self.void(error),
            broken=bool(error),
            asked=len(results),
            notes=tuple(notes),
            account={"values": values, "errors": errors},
            **participants(self.roles, results, pool.loads),
        )
        return self.measured(result)

    def measured(self, result: Result) -> Result:
        """Return a result with the energies of the variants, each with its interval over seeds.

        Few seeds may have equal energies by chance, so an interval is at least that of sampling.
        """
        account = result.account
        intervals = []
        for by_seed, error in zip(account["values"].values(), account["errors"], strict=True):
            intervals.append(partial(over_seeds, by_seed["energy"], error=error))
        return replace(result, quantities={"energy": Bounded(tuple(intervals))})


class VariantTable(Table, frozen=True, kw_only=True):
    """``[eval.variant.NAME]``: what differs from the network as written.

    Args:
        interviewee: Another interviewee, by its name among the models.
        network: Settings of the network that differ, such as its nodes.
    """

    gone: ClassVar[Mapping[str, str]] = {"nodes": "write all nodes of the variant under network"}

    interviewee: str | None = None
    network: dict[str, Any] = {}


class AblationTable(NetworkStudyTable, frozen=True, kw_only=True):
    """``[[eval]]`` of the kind ``ablation``.

    Args:
        seeds: Seeds that each variant is run with, at least 2.
        variant: Variants of the network, by name.
    """

    kind: Literal["ablation"]  # type: ignore[assignment]  # a literal of its own
    seeds: Annotated[int, msgspec.Meta(ge=2)] = 5
    variant: dict[str, VariantTable] = {}


def _build(spec: EvalSpec, settings: Settings, context: Context) -> AblationEvaluation:
    table: AblationTable = spec.table
    models = members(table, settings, other_members(table), context.folders)
    read = network_reader(spec, context)
    variants = {AS_WRITTEN: VariantTable(), **table.variant}
    first = spec.seed(settings)
    networks = []
    for seed in range(first, first + table.seeds):
        for name, variant in variants.items():
            data = {**spec.data.get("network", {}), **variant.network, "seed": seed}
            with located(f"variant {name!r}"):
                networks.append(read(data, variant.interviewee or models[0].name))
    check_members(networks, [member.name for member in models], "any variant")
    roles = roles_of(networks, models)
    written = {**recorded(spec.data), "seed": first}
    return AblationEvaluation(
        spec.name, tuple(variants), tuple(networks), roles, written, table.memory, settings.folder
    )


_SECTION = Service("ablation", "pytest_adaptive_eval.extensions.studies.report_sections.ablation:SECTION")
ABLATION = EvaluationKind(AblationTable, AblationEvaluation.metrics, _build, section=_SECTION.load)
