"""Evaluations of the kind ``ablation``: a network beside variants of it, each run with the same seeds.

A quantity of a network, such as its energy, has one value per seed. The change from one variant to another is the mean
of its differences by seed, with Student's interval. Welch's test takes the values of the two as independent, as in
MACEval's ablation of the number of queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.spec import Context, EvalSpec, EvaluationKind, Plan, Progress, Settings
from pytest_adaptive_eval.extensions.studies.network.declare import read_network, recorded
from pytest_adaptive_eval.extensions.studies.network.kind import (
    NetworkStudyTable,
    bank_reader,
    check_members,
    notes_on_answers,
    other_members,
    void_reason,
)
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.extensions.studies.network.topology import Network
from pytest_adaptive_eval.extensions.studies.several import Member, costs_of, members, model_pool
from pytest_adaptive_eval.gates.quantities import Bounded
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.reuse import CompletionStore
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.registry import Service
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import Count, Table, described, located
from pytest_adaptive_eval.types import Array

#: Confidence of each one-sided bound of a change: 95 % two-sided.
CONFIDENCE = 0.975
METHOD = "Student over seeds"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Change of one quantity from the network as written to a variant.

    Args:
        before, after: Means over seeds.
        change: None with fewer than two seeds that have both values.
        p_value: Two-sided, of Welch's t-test; NaN where it is undefined.
        seeds: Seeds that have both values.
    """

    variant: str
    quantity: str
    before: float
    after: float
    change: Interval | None
    p_value: float
    seeds: int


def quantities(results: Sequence[NetworkResult]) -> dict[str, Array]:
    """Return the values of each quantity by seed, NaN where missing.

    The quantities are ``energy``, ``area of NODE``, and ``error rate of NODE`` of nodes with an interviewer.
    """
    values: dict[str, list[float]] = {"energy": [result.energy.estimate for result in results]}
    for n, node in enumerate(results[0].nodes):
        nodes = [result.nodes[n] for result in results]
        values[f"area of {node.name}"] = [node_result.area for node_result in nodes]
        if any(node_result.interviewer for node_result in nodes):
            values[f"error rate of {node.name}"] = [node_result.error_rate for node_result in nodes]
    return {name: np.array(by_seed, dtype=np.float64) for name, by_seed in values.items()}


def contrasts(variant: str, before: Mapping[str, Array], after: Mapping[str, Array]) -> list[Contrast]:
    """Return the changes of all quantities that both have, in order."""
    changes = []
    for name in (name for name in after if name in before):
        both = np.isfinite(before[name]) & np.isfinite(after[name])
        old, new = before[name][both], after[name][both]
        change = mean_over_seeds(new - old, CONFIDENCE)
        means = (float(old.mean()), float(new.mean())) if both.any() else (math.nan, math.nan)
        changes.append(Contrast(variant, name, *means, change, welch_p_value(old, new), int(both.sum())))
    return changes


def mean_over_seeds(values: Array, confidence: float) -> Interval | None:
    """Return the mean with Student's interval; None with fewer than two finite values."""
    from scipy.special import stdtrit

    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return None
    mean, error = float(finite.mean()), float(finite.std(ddof=1)) / len(finite) ** 0.5
    half_width = float(stdtrit(len(finite) - 1, confidence)) * error
    return Interval(mean, mean - half_width, mean + half_width, confidence, METHOD)


def welch_p_value(first: Array, second: Array) -> float:
    """Return the two-sided p-value of Welch's t-test; NaN with fewer than two values, or without any variance."""
    from scipy.stats import ttest_ind_from_stats

    if min(len(first), len(second)) < 2 or not (np.ptp(first) or np.ptp(second)):
        return math.nan
    moments = [(values.mean(), values.std(ddof=1), len(values)) for values in (first, second)]
    return float(ttest_ind_from_stats(*moments[0], *moments[1], equal_var=False).pvalue)


_METRICS = ("energy",)
#: Name of the network without changes.
AS_WRITTEN = "as written"


@dataclass(frozen=True, slots=True)
class AblationPlan(Plan):
    """Variants of a network that are ready to run; see `evaluation.spec.Plan`.

    Args:
        arms: Networks of each variant by seed; the first is the network as written.
    """

    kind = "ablation"
    metrics = _METRICS
    name: str
    arms: Mapping[str, tuple[Network, ...]]
    models: tuple[Member, ...]
    written: Mapping[str, Any]
    memory: int | None
    folder: Path

    @property
    def candidate(self) -> str:
        """Name under which the network without a variant's changes is compared."""
        return AS_WRITTEN

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the variants."""
        return tuple(self.arms)

    @property
    def networks(self) -> list[Network]:
        """All networks, of each variant by seed."""
        return [network for networks in self.arms.values() for network in networks]

    @property
    def roles(self) -> tuple[tuple[Member, bool], ...]:
        """The models: interviewees are subjects, supervisors and interviewers are agents."""
        interviewed = {name for network in self.networks for name in network.subjects}
        return tuple((member, member.name in interviewed) for member in self.models)

    @property
    def outlook(self) -> str:
        """A sentence on the variants and the largest number of items."""
        most = sum(node.levels * node.queries * net.rounds for net in self.networks for node in net.nodes)
        seeds = counted(len(self.arms[AS_WRITTEN]), "seed")
        return f"{', '.join(self.subjects)}, {seeds} each, at most {counted(most, 'question')}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as written, and the names."""
        seeds = [network.seed for network in self.arms[AS_WRITTEN]]
        return {"ablation": dict(self.written), "seeds": seeds, "subjects": list(self.subjects)}

    def void(self, error: str) -> Result:
        """Return the result of variants that could not run."""
        return self.void_result(error, size=len(self.networks), unit="networks")

    def restore(self, data: Mapping[str, Any]) -> Result:
        """Restore a result of another process."""
        result = Result.from_json(data)
        arms = [arm["quantities"]["energy"] for arm in result.account.get("arms", ())]
        return replace(result, quantities=_measured(arms)) if arms else result

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run all variants with all seeds."""
        with model_pool(self, self.memory, self.folder / "cache") as pool:
            results = dict(self._results(pool, replies, progress))
        values = {name: quantities(networks) for name, networks in results.items()}
        every = [result for networks in results.values() for result in networks]
        error = next(_sentences(results, void_reason), "")
        models = {name: identity for result in every for name, identity in result.models.items()}
        changes = [
            change
            for name, by_quantity in values.items()
            if name != AS_WRITTEN
            for change in contrasts(name, values[AS_WRITTEN], by_quantity)
        ]
        arms = [
            {"name": name, "interviewee": results[name][0].interviewee, "quantities": plain(by_quantity)}
            for name, by_quantity in values.items()
        ]
        return replace(
            self.void(error),
            broken=bool(error),
            quantities=_measured([arm["quantities"]["energy"] for arm in arms]),
            asked=len(every),
            notes=tuple(_sentences(results, lambda result: "; ".join(notes_on_answers(result)))),
            account={"arms": arms, "contrasts": plain(changes), "settings": plain(self.to_json()["ablation"])},
            costs=costs_of(self.models, [row for result in every for row in result.by_member], pool.loads),
            members=tuple({**identity, "name": name} for name, identity in models.items()),
        )

    def _results(
        self, pool: ModelPool, replies: CompletionStore, progress: Progress
    ) -> Iterator[tuple[str, list[NetworkResult]]]:
        done = 0
        for name, networks in self.arms.items():
            results = []
            for network in networks:
                results.append(hold_network(network, pool, replies=replies, pictures=self.folder / "pictures"))
                done += 1
                progress(done, len(self.networks), f"network {done} of {len(self.networks)}")
            yield name, results


def _sentences(results: Mapping[str, list[NetworkResult]], tell: Callable[[NetworkResult], str]) -> Iterator[str]:
    """Return the first sentence on the networks of each variant, for variants that have any."""
    for name, networks in results.items():
        if sentence := next(filter(None, map(tell, networks)), ""):
            yield f"{name}: {sentence}"


def _measured(energies: list[list[float]]) -> dict[str, Bounded]:
    """Return the energies of variants, each with its interval over seeds."""
    intervals = [partial(_over_seeds, np.array(values, dtype=np.float64)) for values in energies]
    return {"energy": Bounded(tuple(intervals))}


def _over_seeds(values: Any, confidence: float) -> Interval:
    interval = mean_over_seeds(values, confidence)
    assert interval is not None  # there are at least two seeds, and each network has an energy
    return interval


class VariantTable(Table, frozen=True, kw_only=True):
    """``[[eval.variant]]``: what differs from the network as written."""

    name: Annotated[str, described("name of the variant")]
    interviewee: Annotated[str | None, described("another interviewee, by its name among the models")] = None
    network: Annotated[dict[str, Any], described("settings of the network that differ")] = {}
    nodes: Annotated[dict[str, dict[str, Any]], described("settings of nodes that differ, by the node's name")] = {}


class AblationTable(NetworkStudyTable, frozen=True, kw_only=True):
    """``[[eval]]`` of the kind ``ablation``."""

    kind: Literal["ablation"]  # type: ignore[assignment]  # a literal of its own
    seeds: Annotated[Count, described("seeds that each variant is run with, at least 2")] = 5
    variant: Annotated[list[VariantTable], described("variants of the network")] = []


def _build(spec: EvalSpec, settings: Settings, context: Context) -> AblationPlan:
    table = spec.table
    assert isinstance(table, AblationTable)
    if not spec.data.get("network") or not table.variant:
        raise ConfigError("an ablation has [eval.network], [[eval.network.node]] and at least one [[eval.variant]]")
    if table.seeds < 2:
        raise ConfigError(f"seeds is {table.seeds}: an interval takes at least 2")
    models = members(table, settings, other_members(table), context.folders)
    names = [AS_WRITTEN, *(variant.name for variant in table.variant)]
    if len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise ConfigError(f"the variants are called {', '.join(names[1:])}: name each, and none {AS_WRITTEN!r}")
    written = dict(spec.data["network"])
    first = spec.seed(settings) if settings.seed is not None or "seed" in spec.data else int(written.get("seed", 0))
    read = cache(bank_reader(context))

    def networks(data: Mapping[str, Any], interviewee: str) -> tuple[Network, ...]:
        tools: dict[str, Any] = {"families": context.tasks(), "banks": read, "graders": settings.graders}
        several = [
            read_network({**data, "seed": first + n}, interviewee, where=spec.where, **tools)
            for n in range(table.seeds)
        ]
        return tuple(replace(network, unanswered=table.unanswered) for network in several)

    arms = {AS_WRITTEN: networks(written, models[0].name)}
    for variant in table.variant:
        with located(f"variant {variant.name!r}"):
            arms[variant.name] = networks(_changed(written, variant), variant.interviewee or models[0].name)
    plan = AblationPlan(spec.name, arms, tuple(models), recorded(spec.data), table.memory, settings.folder)
    check_members(plan.networks, [member.name for member in models], "any variant")
    return plan


def _changed(written: Mapping[str, Any], variant: VariantTable) -> dict[str, Any]:
    nodes = [dict(node) for node in written.get("node", ())]
    by_name = {str(node.get("name") or node.get("task") or Path(str(node.get("bank"))).stem): node for node in nodes}
    for name, changes in variant.nodes.items():
        if name not in by_name:
            raise ConfigError(
                f"it changes the node {name!r}, which the network lacks; its nodes are {', '.join(by_name)}"
            )
        node = by_name[name]
        if "bank" in changes or "task" in changes:  # one replaces the other, under the same name
            for key in ("bank", "task"):
                node.pop(key, None)
            node.setdefault("name", name)
        node.update(changes)
    return {**written, **variant.network, "node": nodes}


_SECTION = Service("ablation", "pytest_adaptive_eval.extensions.studies.report_sections.ablation:SECTION")
ABLATION = EvaluationKind(AblationTable, _METRICS, _build, section=_SECTION.load)
