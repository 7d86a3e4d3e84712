"""MACEval's ablations with the fixture checkpoints.

``python -m benchmarks.network_ablations [--only NAME] [--seeds 10] [--interviewer SPEC]`` with the names

interviewers  another interviewer for the same interviewee, and a star of three
roles         another supervisor, and one checkpoint in all three roles
queries       10, 20, 30 and 50 questions a level, with t-tests
injected      meaningless text added to what is passed on, over five rounds
static        a bank that stays the same beside questions drawn anew
passing       errors of an interviewer with and without the dialogue of the node before

SPEC is a folder or ``http://HOST:PORT/v1#MODEL`` of an agent. Without one, interviewers are by code and err as often as
they are told to, so that ``injected`` and ``passing`` show that the network measures what was planted, and nothing
about models. The fixture checkpoints cannot restore texts, multiply decimals, find ways or write programs: where these
are asked, the interviewee is by code too. Questions that ask for programs cannot be written by an interviewer, as no
code could tell their truth; generation and debugging are asked by code alone, without errors to count.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import torch
from scipy import stats

from benchmarks.network_agents import CodedAgent, chance, writer
from benchmarks.network_energy import CHECKPOINTS, COUNTING, OPERATIONS, ORDER, subject
from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.pool import ModelPool

SEQUENCES = {
    "disrupt -> mask": ("scrambled", "masked"),
    "digits -> operations": ("decimals", "operations"),
    "nodes -> density": ("path_nodes", "path_density"),
}
TASKS: tuple[dict[str, Any], ...] = (OPERATIONS, ORDER, COUNTING)
NOISE = "qzx vvkq jjwq xzzk"


class Solver(Model):
    """Is right more rarely the higher the level is."""

    def __init__(self) -> None:
        super().__init__(SubjectIdentity("solver", "solver"))

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """The item's own answer, or none that is right."""
        right = [chance(item.prompt) < 1.2 - 0.2 * int(item.meta["level"]) for item in items]
        return [Completion(item.answer if ok else "I do not know.") for item, ok in zip(items, right, strict=True)]


def pool(spec: str) -> ModelPool:
    """All that take part, by name."""
    agents: dict[str, Callable[[], Any]] = {
        "honest": lambda: CodedAgent("honest", writer()),
        "weak": lambda: CodedAgent("weak", writer(broken=0.4, repeats=0.3)),
        "lying": lambda: CodedAgent("lying", writer(wrong=0.5)),
        "erring": lambda: CodedAgent("erring", writer(broken=0.5)),
        "attentive": lambda: CodedAgent("attentive", writer(broken=0.5, attentive=0.5)),
        "content": lambda: CodedAgent("content", "no"),
        "itself": lambda: load_model(str(CHECKPOINTS / "interviewer"), device="cpu", chats=True),
    }
    if spec:
        agents["given"] = lambda: load_model(spec, chats=True)
    subjects: dict[str, Callable[[], Any]] = {
        name: partial(subject, name) for name in ("text-early", "text-late", "interviewer")
    }
    remote = ["given"] if spec.startswith("http") else []
    return ModelPool(agents | subjects | {"solver": Solver}, remote=remote)


def spread(values: Iterable[float]) -> str:
    """Mean and standard deviation."""
    found = np.array(list(values))
    return f"{found.mean():.2f} (sd {found.std(ddof=1) if len(found) > 1 else 0.0:.2f})"


def hold(held: ModelPool, name: str, **data: Any) -> NetworkResult:
    """One network."""
    return hold_network(read_network(data, name), held)


def error(results: Sequence[NetworkResult], place: int) -> str:
    """Share of an interviewer's questions that broke the format, missed the level or repeated."""
    rates = [result.nodes[place].error_rate for result in results]
    return "-" if np.isnan(rates).all() else f"{np.nanmean(rates):.2f}"


def interviewers(held: ModelPool, seeds: range, given: str) -> None:
    """Areas of one interviewee under several interviewers."""
    for name in ("", "honest", "weak", "lying", *([given] if given else [])):
        found = [hold(held, "text-late", topology="star", seed=s, interviewer=name, node=[*TASKS]) for s in seeds]
        told = ", ".join(
            f"{task['task']} {spread(one.nodes[n].area for one in found)}, errors {error(found, n)}"
            for n, task in enumerate(TASKS)
        )
        print(f"text-late by {name or 'code'}: {told}", flush=True)
    nodes = [{**task, "interviewers": ["honest", "weak", "lying"]} for task in TASKS]
    found = [hold(held, "text-late", topology="star", seed=s, node=nodes) for s in seeds]
    told = ", ".join(f"{task['task']} {spread(one.opinions()[task['task']] for one in found)}" for task in TASKS)
    print(f"text-late in a 1v3 star: {told}", flush=True)


def roles(held: ModelPool, seeds: range, _: str) -> None:
    """Other supervisors, and one checkpoint as interviewee, interviewer and supervisor."""
    for who, interviewer, supervisors in (
        ("text-late", "", ("", "content", "itself")),
        ("interviewer", "honest", ("", "content", "itself")),
        ("interviewer", "itself", ("itself",)),
    ):
        for supervisor in supervisors:
            more = {"supervisor": supervisor} if supervisor else {}
            nodes = [{**OPERATIONS, "interviewer": interviewer}, {**ORDER, "interviewer": interviewer}]
            found = [
                hold(held, who, topology="star", seed=s, queries=5, retries=0, node=nodes, **more) for s in seeds[:3]
            ]
            areas = " ".join(f"{node['task']} {spread(r.nodes[n].area for r in found)}" for n, node in enumerate(nodes))
            counts = [sum(node.counts.get(k, 0) for r in found for node in r.nodes) for k in ("reviews", "unread")]
            refused = sum(node.counts.get("review", 0) for r in found for node in r.nodes)
            print(
                f"interviewee {who}, interviewer {interviewer or 'code'}, supervisor {supervisor or 'none'}: {areas}; "
                f"{counts[0]} reviews, {counts[1]} unread, {refused} questions refused, {len(found)} seeds",
                flush=True,
            )


def queries(held: ModelPool, seeds: range, _: str) -> None:
    """More questions a level."""
    areas: dict[tuple[str, int], list[float]] = {}
    for count in (10, 20, 30, 50):
        found = [hold(held, "text-late", topology="star", seed=s, queries=count, node=[*TASKS]) for s in seeds]
        for n, task in enumerate(TASKS):
            areas[task["task"], count] = [one.nodes[n].area for one in found]
            values = areas[task["task"], count]
            half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
            bounds = [found[0].nodes[n].interval(0.975)]
            print(
                f"{task['task']} {count}@{len(values)}: {spread(values)}, 95 % of the mean "
                f"[{np.mean(values) - half:.3f}, {np.mean(values) + half:.3f}], one ladder alone "
                + ", ".join(f"[{b.low:.2f}, {b.high:.2f}]" for b in bounds if b),
                flush=True,
            )
    for task in TASKS:
        for more in (20, 30, 50):
            p = stats.ttest_ind(areas[task["task"], 10], areas[task["task"], more], equal_var=False).pvalue
            print(f"{task['task']}: 10 and {more} questions differ with p = {p:.3f} (two-sided, Welch)")


class Injecting(CodedAgent):
    """Adds meaningless text to what it is told of earlier nodes, more the more there are."""

    def __init__(self, agent: Any) -> None:
        super().__init__("injecting", lambda text: agent.ask([_message(self._noisy(text))], max_tokens=512))

    @staticmethod
    def _noisy(text: str) -> str:
        return text.replace(": area", f" {NOISE} " * text.count(": area") + ": area")


def _message(text: str) -> Any:
    from pytest_adaptive_eval.models.base import Message

    return Message("user", text)


def injected(held: ModelPool, seeds: range, given: str) -> None:
    """A line of five nodes of the same task, each of which is told of the ones before."""
    agent = held.model(given or "erring")
    own = ModelPool(
        {"injecting": lambda: Injecting(agent), "plain": lambda: agent, "text-late": lambda: held.model("text-late")}
    )
    nodes = [{**ORDER, "levels": 3, "name": f"round {n + 1}"} for n in range(5)]
    for name in ("plain", "injecting"):
        found = [hold(own, "text-late", seed=s, interviewer=name, node=nodes) for s in seeds]
        told = ", ".join(f"round {n + 1} {error(found, n)}" for n in range(5))
        print(
            f"{name}: error rates {told}; areas {spread(node.area for one in found for node in one.nodes)}", flush=True
        )


def static(held: ModelPool, seeds: range, _: str) -> None:
    """Accuracies by level on a bank and on questions drawn anew."""
    whole = read_bank(CHECKPOINTS.parent / "banks" / "text.items.jsonl")
    for name in ("text-early", "text-late"):
        for task in TASKS:
            cap = len({item.meta["level"] for item in whole.only(task["task"]).items})
            sources = {"static": {"bank": task["task"]}, "dynamic": {**task, "levels": cap}}
            for kind, node in sources.items():
                found = [
                    hold_network(
                        read_network({"seed": s, "stop_at": 0.0, "node": [node]}, name, banks=whole.only),
                        held,
                    ).nodes[0]
                    for s in seeds
                ]
                levels = [[x for one in found if n < len(one.scores) for x in one.scores[n]] for n in range(cap)]
                curve = " ".join(f"{np.nanmean(level):.2f}" if level else "-" for level in levels)
                print(
                    f"{name} {task['task']} {kind}: area {spread(one.area for one in found)}, by level {curve}",
                    flush=True,
                )


def passing(held: ModelPool, seeds: range, given: str) -> None:
    """Error rates of the second node's interviewer."""
    for agent in [given] if given else ["attentive", "erring"]:
        for name, pair in SEQUENCES.items():
            nodes = [{"task": task, "levels": 3} for task in pair]
            rates = [
                error([hold(held, "solver", seed=s, interviewer=agent, passing=on, node=nodes) for s in seeds], 1)
                for on in (False, True)
            ]
            print(f"{agent}, {name}: without the dialogue {rates[0]}, with it {rates[1]}", flush=True)
    print("generation -> debugging: their questions are by code alone, and none is in error")


ABLATIONS = {one.__name__: one for one in (interviewers, roles, queries, injected, static, passing)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(ABLATIONS), default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--interviewer", default="", metavar="SPEC")
    options = parser.parse_args()
    torch.set_num_threads(1)
    held = pool(options.interviewer)
    for name in [options.only] if options.only else ABLATIONS:
        print(f"-- {name}")
        ABLATIONS[name](held, range(200, 200 + options.seeds), "given" if options.interviewer else "")


if __name__ == "__main__":
    main()
