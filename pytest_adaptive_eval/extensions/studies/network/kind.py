"""Evaluations of the kind ``network``: one model is interviewed at each node, by code or by other models."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_adaptive_eval.banks.ready import missing_bank
from pytest_adaptive_eval.errors import BaselineError, ConfigError, EstimationError
from pytest_adaptive_eval.evaluation.evaluation import Evaluation, Progress
from pytest_adaptive_eval.evaluation.spec import Context, EvalSpec, EvaluationKind, Settings
from pytest_adaptive_eval.evaluation.tables import KindTable
from pytest_adaptive_eval.extensions.studies.network.declare import (
    NetworkTable,
    SupervisorTable,
    read_network,
    recorded,
)
from pytest_adaptive_eval.extensions.studies.network.labels import Label, read_labels, supervisor_agreement
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.extensions.studies.network.result import (
    NetworkResult,
    area_difference,
    energy,
    energy_difference,
    energy_error,
)
from pytest_adaptive_eval.extensions.studies.network.topology import Network
from pytest_adaptive_eval.extensions.studies.several import (
    Member,
    MemberTable,
    costs_of,
    members,
    model_pool,
    population_key,
)
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.quantities import Bounded
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.items.item import unanswered_sentence
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import truncation_sentence
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.records.parts import converted, plain
from pytest_adaptive_eval.registry import Service
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import replaced

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

#: The first metric is of the interviewee, the others are of nodes.
_METRICS = ("energy", "auc", "last_level")
#: Share of failed answers above which the run is void.
_FAULTS = 0.05
#: Fewest reviews by which a supervisor is named that refuses all of them, or of which most are unreadable.
_REVIEWS = 5
#: Share of an interviewer's items written by code above which a warning is added.
_FALLBACKS = 0.05


@dataclass(frozen=True, slots=True)
class NetworkEvaluation(Evaluation):
    """A network that is ready to run.

    Args:
        models: The interviewee first.
        labels: Reviews by people or code, with which the supervisor's are compared.
    """

    kind = "network"
    metrics = _METRICS
    name: str
    network: Network
    models: tuple[Member, ...]
    written: Mapping[str, Any]
    memory: int | None
    folder: Path
    labels: tuple[Label, ...] = ()

    @property
    def candidate(self) -> str:
        """Name of the interviewee."""
        return self.network.interviewee

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the interviewee, of the nodes, and of groups of several interviewers of one task."""
        return (self.candidate, *(node.name for node in self.network.nodes), *self.groups)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of groups of several interviewers of one task, whose mean opinion is an area."""
        names = [node.group for node in self.network.nodes if node.group]
        return tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)

    @property
    def roles(self) -> tuple[tuple[Member, bool], ...]:
        """The models: interviewees are subjects, supervisors and interviewers are agents."""
        return roles_of([self.network], self.models)

    @property
    def _most(self) -> int:
        """Largest number of replies, without reviews of exchanges."""
        network = self.network
        attempts = 1 + network.retries
        most = 0
        for node in network.nodes:
            replies = (1 + len(node.panel)) * (1 + node.cycles)
            if node.interviewer:
                replies += attempts
            if node.interviewer and network.supervision is not None:
                replies += attempts  # the supervisor reviews each attempt
            most += node.levels * node.queries * replies
        return network.rounds * most

    @property
    def outlook(self) -> str:
        """A sentence on topology, models and the largest number of items."""
        network = self.network
        most = sum(node.levels * node.queries for node in network.nodes) * network.rounds
        others = [member.name for member in self.models[1:]]
        text = f"{self.candidate} in a {network.topology} of {counted(len(network.nodes), 'node')}"
        if others:
            text += f", with {', '.join(others)}"
        return f"{text}, at most {counted(most, 'question')}"

    def to_json(self) -> dict[str, Any]:
        """Return the network's settings as written, and the names."""
        return {"network": dict(self.written), "seed": self.network.seed, "subjects": list(self.subjects)}

    def check(self, condition: Condition) -> None:
        """Raise a ConfigError for a gate on a metric that its subject does not have."""
        condition.check_subjects(self.metrics, self.subjects, self.candidate)
        of_node = condition.subject in self.subjects[1:]
        fault = ""
        if of_node == (condition.metric == _METRICS[0]):
            fault = (
                f"{_METRICS[0]} is of the interviewee, {' and '.join(_METRICS[1:])} are of a node: write subject = "
                f'"NODE", one of {", ".join(self.subjects[1:])}'
            )
        elif condition.subject in self.groups and condition.metric != "auc":
            fault = (
                f"{condition.subject} is the mean opinion of several interviewers, which is an area: gate on auc, or "
                "on one of its nodes"
            )
        if fault:
            raise ConfigError(fault)

    def void(self, error: str) -> Result:
        """Return the result of a network that could not run."""
        return self.void_result(error, size=len(self.network.nodes), unit="nodes", seed=self.network.seed)

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run all nodes."""
        pictures = self.folder / "pictures"
        numbers = itertools.count(1)

        def replied() -> None:
            number = next(numbers)
            progress(number, self._most, f"reply {number}")

        with model_pool(self, self.memory, self.folder / "cache") as pool:
            result = hold_network(self.network, pool, replies=replies, pictures=pictures, replied=replied)
        account = result.to_json()
        notes = list(notes_on_answers(result))
        if self.labels:
            agreement = supervisor_agreement(result, self.labels)
            account["agreement"] = plain(agreement)
            if not agreement.judged + agreement.rated:
                notes.append(f"no label is of a readable review of {result.supervisor}: check node and item of labels")
        error = void_reason(result)
        study = replace(
            self.void(error),
            broken=bool(error),
            notes=tuple(notes),
            warnings=tuple(warnings_on_agents(result)),
            account=account,
            **participants(self.roles, [result], result.loads),
        )
        return self.measured(study)

    @property
    def population(self) -> str:
        """Key of the nodes and of what is asked in them."""
        written = dict(self.written)
        written.pop("seed", None)
        return population_key(written)

    def recall(self, account: Mapping[str, Any]) -> Result:
        """Return an earlier run of the same nodes as a baseline."""
        try:
            result = NetworkResult.from_json(account)
        except ConfigError as error:
            raise BaselineError(f"the record's network cannot be read ({error}): record the baseline again") from None
        before = [node.name for node in result.nodes]
        names = [node.name for node in self.network.nodes]
        if before != names:
            raise BaselineError(
                f"the baseline has the nodes {', '.join(before)}, and this network {', '.join(names)}: record it again"
            )
        subjects = (result.interviewee, *self.subjects[1:])
        baseline = replace(self.void(""), candidate=result.interviewee, subjects=subjects, account=account)
        return self.measured(baseline)

    def measured(self, result: Result) -> Result:
        """Return a result with the energy, the areas and the last levels of its account."""
        network = NetworkResult.from_json(result.account)
        nodes = network.nodes
        groups = network.groups()
        no_group: tuple[None, ...] = (None,) * len(self.groups)
        none: tuple[None, ...] = (None,) * len(nodes) + no_group
        opinions: list[Any] = []
        for group in self.groups:
            complete = all(node.opened for node in groups[group])
            opinions.append(partial(network.opinion, group) if complete else None)
        areas: list[Any] = []
        last: list[Any] = []
        area_errors = []
        guessed = []
        unmeasured = {}
        for node in nodes:
            areas.append(node.interval if node.opened else None)
            last.append(node.last if node.opened else None)
            in_levels = replace(node, weight=node.levels)
            area_errors.append(energy_error([in_levels]))
            guessed.append(node.guess_area)
            if not node.opened:
                unmeasured[node.name] = _why_closed(node)
        guessed += map(network.guess_opinion, self.groups)
        whole = Bounded((partial(energy, nodes), *none), (energy_error(nodes), *none), (network.guess_energy, *none))
        of_nodes = Bounded((None, *areas, *opinions), (None, *area_errors, *no_group), (None, *guessed))
        last_levels = Bounded((None, *last, *no_group))
        return replace(
            result,
            quantities={"energy": whole, "auc": of_nodes, "last_level": last_levels},
            asked=sum(node.opened for node in nodes),
            difference=partial(_difference, network),
            unmeasured=unmeasured,
        )


def _why_closed(node: NodeResult) -> str:
    before = " and ".join(node.after)
    return f"{node.name} stayed closed, since {before} did not surely reach an area of {node.opens_at:g}"


def _difference(result: NetworkResult, metric: str, subject: str, baseline: Result, confidence: float) -> Interval:
    """Return a value of this network less that of a baseline, by question where both were asked the same by code."""
    before = NetworkResult.from_json(baseline.account)
    if metric == _METRICS[0]:
        return energy_difference(result, before, confidence)
    if subject in result.groups():
        new = result.opinion(subject, confidence)
        old = before.opinion(subject, confidence)
        if new is None or old is None:
            raise EstimationError(f"a node of {subject} was not run in both")
        return new.less(old)
    return area_difference(result, before, subject, confidence)


def void_reason(result: NetworkResult) -> str:
    """Return why faults of the run make a network void, or ''."""
    if result.fault_share > _FAULTS:
        return f"{result.fault_share:.0%} of the answers failed, more than {_FAULTS:.0%}"
    return ""


def notes_on_answers(result: NetworkResult) -> Iterator[str]:
    """Return notes on answers that are empty, refused or truncated, and on truncated replies of agents."""
    yield from filter(None, [unanswered_sentence(result.statuses), result.cut()])
    for name, (count, replies) in result.truncated.items():
        yield truncation_sentence(count, replies, result.cap(name), answers=f"replies of {name}")


def warnings_on_agents(result: NetworkResult) -> Iterator[str]:
    """Yield warnings on interviewers that did not set their questions, and on a supervisor of no use."""
    for name in dict.fromkeys(node.interviewer for node in result.nodes if node.interviewer):
        yield from _fallback_note(result, name)
    yield from _supervisor_notes(result)


def _supervisor_notes(result: NetworkResult) -> Iterator[str]:
    given_up = sum(node.counts.get("supervisor_given_up", 0) for node in result.nodes)
    for subject, counts in result.reviews().items():
        reviews = counts["reviews"]
        unread = counts["unread"]
        if reviews < _REVIEWS:
            continue
        refused_all = counts["refused"] == reviews
        was_given_up = given_up and subject == "question"
        if refused_all or was_given_up:
            refused = "all"
            if not refused_all:
                refused = f"{counts['refused']} of"
            note = f"the supervisor {result.supervisor!r} found a fault in {refused} {reviews} {subject}s"
            if was_given_up:
                note += f"; it was given up at {counted(given_up, 'node')}, where code set the rest of the questions"
            yield note
        elif 2 * unread > reviews:
            yield f"{unread} of {reviews} reviews of {subject}s by the supervisor {result.supervisor!r} are unreadable"


def _fallback_note(result: NetworkResult, interviewer: str) -> Iterator[str]:
    """Yield a warning on an interviewer of whose questions code set too many."""
    counts: Counter[str] = Counter()
    asked = 0
    errors = 0
    for node in result.nodes:
        if node.interviewer == interviewer:
            counts.update(node.counts)
            asked += sum(map(len, node.scores))
            errors += node.errors
    if counts["fallbacks"] <= _FALLBACKS * asked:
        return
    reasons = []
    if errors:
        reasons.append(f"{errors} by faults of its own")
    if counts["review"]:
        reasons.append(f"{counts['review']} refused by the supervisor {result.supervisor!r}")
    if counts["unreviewed"]:
        reasons.append(f"{counts['unreviewed']} after the supervisor was given up")
    note = (
        f"{counts['fallbacks']} of {asked} questions that {interviewer} was to set were set by code: of its "
        f"{counted(counts['attempts'], 'attempt')}, {' and '.join(reasons) or 'none could be used'}"
    )
    if counts["given_up"]:
        note += f"; it was given up at {counted(counts['given_up'], 'node')}"
    yield note


class NetworkStudyTable(KindTable, frozen=True, kw_only=True):
    """``[[eval]]`` of the kind ``network``.

    Args:
        network: Topology and nodes.
        models: Other models of the network, by name.
    """

    kind: Literal["network"]
    network: NetworkTable | None = None
    models: dict[str, str | MemberTable] = {}


def _build(spec: EvalSpec, settings: Settings, context: Context) -> NetworkEvaluation:
    table = spec.table
    assert isinstance(table, NetworkStudyTable)
    if not spec.data.get("network"):
        raise ConfigError("no network: write [eval.network] with a topology, and [[eval.network.node]]")
    models = members(table, settings, other_members(table), context.folders)
    written = dict(spec.data["network"])
    if settings.seed is not None or "seed" in spec.data:
        written["seed"] = spec.seed(settings)
    network = network_reader(spec, context)(written, models[0].name)
    check_members([network], [member.name for member in models], "the network")
    if any(node.name == network.interviewee for node in network.nodes):
        raise ConfigError(f"a node is called {network.interviewee!r}, as the candidate is: give it another name")
    labels = _labels(table.network, context)
    return NetworkEvaluation(
        spec.name, network, tuple(models), recorded(written), table.memory, settings.folder, labels
    )


def other_members(table: NetworkStudyTable) -> list[MemberTable]:
    """Return the models of a network besides its interviewee, with their names."""
    tables = []
    for name, entry in table.models.items():
        if isinstance(entry, str):
            tables.append(MemberTable(name=name, model=entry))
        else:
            tables.append(replaced(entry, name=name))
    return tables


def network_reader(spec: EvalSpec, context: Context) -> Callable[[Mapping[str, Any], str], Network]:
    """Return a function that reads a network from plain data and the interviewee's name, and each bank once."""

    @cache
    def read_bank(path: str) -> ItemBank:
        bank_path = find_input(path, context.folders)
        if bank_path is None:
            raise ConfigError(missing_bank([str(context.folders[0] / path)]))
        return context.read(bank_path)

    def read(data: Mapping[str, Any], interviewee: str) -> Network:
        return read_network(data, interviewee, where=spec.where, families=context.tasks(), banks=read_bank)

    return read


def _labels(table: NetworkTable | None, context: Context) -> tuple[Label, ...]:
    """Return the labels of the supervisor's reviews; an empty tuple without a file of them."""
    supervisor = None
    if table:
        supervisor = table.supervisor
    if not isinstance(supervisor, SupervisorTable) or not supervisor.labels:
        return ()
    path = find_input(supervisor.labels, context.folders)
    return tuple(read_labels(path or context.folders[0] / supervisor.labels))


def roles_of(networks: Iterable[Network], models: Iterable[Member]) -> tuple[tuple[Member, bool], ...]:
    """Return the models of networks, each with whether it is interviewed."""
    interviewed: set[str] = set()
    for network in networks:
        interviewed.update(network.subjects)
    return tuple((member, member.name in interviewed) for member in models)


def participants(
    roles: Iterable[tuple[Member, bool]], results: Sequence[NetworkResult], loads: Mapping[str, int]
) -> dict[str, Any]:
    """Return the costs and the members of networks, as fields of a `Result`."""
    usages: list[tuple[str, str, Usage]] = []
    models: dict[str, Mapping[str, Any]] = {}
    for result in results:
        usages += result.by_member
        models |= result.models
    identities = []
    for name, model in models.items():
        identities.append(converted(SubjectIdentity, {**model, "name": name}))
    return {"costs": costs_of([member for member, _ in roles], usages, loads), "members": tuple(identities)}


def check_members(networks: Sequence[Network], names: Sequence[str], where: str) -> None:
    """Refuse networks whose members are not models, models without a part, and models with two roles."""
    subjects: dict[str, None] = {}
    agents: dict[str, None] = {}
    for network in networks:
        subjects |= dict.fromkeys(network.subjects)
        agents |= dict.fromkeys(network.agents)
    fault = ""
    twice = set(subjects) & set(agents)
    absent = [name for name in (*subjects, *agents) if name not in names]
    unused = set(names).difference(subjects, agents)
    if twice:
        fault = f"{min(twice)!r} is interviewed and an agent too: list the model twice under models, by two names"
    elif absent:
        fault = f'{absent[0]!r} is not a model of this file: add it under models = {{ {absent[0]} = "FOLDER" }}'
    elif unused:
        fault = f"the model {min(unused)!r} has no part in {where}: remove it"
    if fault:
        raise ConfigError(fault)


_SECTION = Service("network", "pytest_adaptive_eval.extensions.studies.report_sections.network:SECTION")
NETWORK = EvaluationKind(NetworkStudyTable, _METRICS, _build, section=_SECTION.load)
