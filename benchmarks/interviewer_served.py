"""The interviewer checkpoint in this process and behind a real server: the same choices, in whatever order.

``python benchmarks/interviewer_served.py --transformers PATH`` draws moments of interviews over the fixture banks'
items and lets the checkpoint ``fixtures/checkpoints/interviewer`` choose in each. It prints how often it picks what its
teacher would (an equally good candidate counts), beside what a uniform draw would; how many choices flip when the
candidates are shuffled; and how many differ between this process and ``transformers serve`` on loopback (PATH is that
command, of an environment with transformers[serving] and accelerate).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import torch

from fixtures.recipe.banks import items_of
from fixtures.recipe.interviewer import State, States, best, category
from pytest_adaptive_eval.interviewer import prompts
from pytest_adaptive_eval.interviewer.agent import AgentInterviewer
from pytest_adaptive_eval.interviewer.interviewer import Choice
from pytest_adaptive_eval.models.base import Model
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel
from pytest_adaptive_eval.models.endpoint.model import EndpointModel

CHECKPOINT = Path(__file__).resolve().parent.parent / "fixtures" / "checkpoints" / "interviewer"
MODES = ("rate", "reply")
ROWS = range(11)
CANDIDATES = 5


def moments(count: int) -> list[State]:
    """Moments with zero to ten categories and five candidates of the banks, whose seeds were not trained on."""
    states = States(random.Random("held-out"), {kind: items_of(kind) for kind in ("text", "vision")})
    return [states.draw(ROWS[n % len(ROWS)], CANDIDATES, plain=True) for n in range(count)]


def interviewer(agent: Model, mode: str, sort_candidates: bool = True) -> AgentInterviewer:
    """One that sorts each question once, and chooses anew each time."""
    return AgentInterviewer(
        agent,
        mode=mode,  # type: ignore[arg-type]
        images=False,
        sort_candidates=sort_candidates,
    )


def choose(leader: AgentInterviewer, state: State, order: Sequence[int]) -> Choice:
    """The choice with the candidates handed in by an order, as an index in their own."""
    choice = leader.choose([state.candidates[i] for i in order], state.memory, state.ability)
    return Choice(order[choice.index], choice.reason, choice.fallback)


def place(state: State, choice: Choice) -> int:
    """The number under which the choice was shown: one that is always the same was not chosen for its sake."""
    shown = sorted(state.candidates, key=lambda one: (one.item.content_hash, one.position))
    return shown.index(state.candidates[choice.index]) + 1


def chosen(leader: AgentInterviewer, name: str, drawn: Sequence[State]) -> list[Choice]:
    """All choices; prints how they compare with the teacher's."""
    begun = time.perf_counter()
    choices = [choose(leader, state, range(CANDIDATES)) for state in drawn]
    seconds = (time.perf_counter() - begun) / len(drawn)
    right = sum(choice.index in best(state) for choice, state in zip(choices, drawn, strict=True))
    chance = sum(len(best(state)) for state in drawn) / CANDIDATES
    print(
        f"{name}: {right} of {len(drawn)} choices are the teacher's (by chance {chance:.1f}), "
        f"{sum(bool(choice.fallback) for choice in choices)} fallbacks, {1000 * seconds:.0f} ms a choice, "
        f"{leader.account()['usage']['calls']} calls",
        flush=True,
    )
    return choices


def straight(agent: Model, state: State, order: Sequence[int]) -> int:
    """The candidate rated highest when the agent itself is given that order."""
    candidates = [state.candidates[i] for i in order]
    scores = agent.prefer(*prompts.rate(candidates, state.memory, state.ability, state.form), prompts.LABEL).scores
    return order[max(range(len(scores)), key=scores.__getitem__)]


@contextlib.contextmanager
def server(command: str) -> Iterator[str]:
    """A server of the checkpoint on loopback; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile() as log:
        words = [command, "serve", str(CHECKPOINT), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
        settings = os.environ | {"HF_HUB_CACHE": empty, "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen([*words, "--dtype", "float32"], env=settings, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(600):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(f"the server ended: {log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.2)
            yield f"{url}/v1"
        finally:
            process.terminate()
            process.wait(30)


def main() -> None:
    """Choose and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choices", type=int, default=100)
    parser.add_argument("--transformers", default="", help="the command; without it nothing is served")
    options = parser.parse_args()
    torch.set_num_threads(1)
    drawn = moments(options.choices)
    order = list(range(CANDIDATES))
    agent = TransformersModel.load(CHECKPOINT, device="cpu")
    leaders = {mode: interviewer(agent, mode) for mode in MODES}
    local = {mode: chosen(leaders[mode], mode, drawn) for mode in MODES}
    for mode in MODES:
        places = Counter(place(state, choice) for state, choice in zip(drawn, local[mode], strict=True))
        print(f"{mode}: by the number under which the choice was shown {dict(sorted(places.items()))}")
    for mode in MODES:
        chosen(interviewer(agent, mode, sort_candidates=False), f"{mode}, candidates not sorted", drawn)
    rng = random.Random("shuffled")
    for mode in MODES:
        flips = sum(
            choose(leaders[mode], state, rng.sample(order, CANDIDATES)).index != choice.index
            for choice, state in zip(local[mode], drawn, strict=True)
        )
        print(f"{mode}: {flips} of {len(drawn)} choices flip when the candidates are shuffled", flush=True)
    flips = sum(
        straight(agent, state, order) != straight(agent, state, rng.sample(order, CANDIDATES)) for state in drawn
    )
    print(f"ratings by the agent itself: {flips} of {len(drawn)} flip", flush=True)
    sort(agent)
    if options.transformers:
        with server(options.transformers) as url:
            compare(EndpointModel.load(url, str(CHECKPOINT)), agent, drawn, local["reply"])


def sort(agent: Model) -> None:
    """Sort the banks' first items together, and others alone."""
    for kind in ("text", "vision"):
        items = random.Random(kind).sample(items_of(kind), 50)
        leader = AgentInterviewer(agent, images=False)
        together = [names for n in range(0, 50, 10) for names in leader.categorise(items[n : n + 10], [])]
        known = sorted({category(item) for item in items})
        alone = [AgentInterviewer(agent, images=False).categorise([item], known)[0] for item in items]
        right = [
            sum(names == (category(i),) for names, i in zip(found, items, strict=True)) for found in (together, alone)
        ]
        failed = dict(leader.account()["fallbacks"])
        print(
            f"{kind}: sorted as the teacher {right[0]} of 50 ten at a time, {right[1]} of 50 alone, fallbacks {failed}"
        )


def compare(served: Model, local: Model, drawn: Sequence[State], here: Sequence[Choice]) -> None:
    """The same choices and categories by the server, and what differs."""
    there = chosen(interviewer(served, "reply"), "served", drawn)
    said = [[choice.reason.partition(" picked it")[2] for choice in choices] for choices in (here, there)]
    same = sum(a.index == b.index for a, b in zip(here, there, strict=True))
    words = sum(a == b for a, b in zip(*said, strict=True))
    print(
        f"served: {same} of {len(drawn)} choices and {words} reasons identical, of {len(set(said[0]))} different ones"
    )
    for n, (a, b) in enumerate(zip(*said, strict=True)):
        if a != b or here[n].index != there[n].index:
            print(f"  moment {n}: here {here[n].index}{a}, served {there[n].index}{b}")
    items = random.Random("served").sample([item for kind in ("text", "vision") for item in items_of(kind)], 100)
    names = [[interviewer(a, "reply").categorise([item], [])[0] for item in items] for a in (local, served)]
    same = sum(a == b for a, b in zip(*names, strict=True))
    print(f"served: {same} of {len(items)} categories identical, of {len(set(names[0]))} different ones")
    for item, a, b in zip(items, *names, strict=True):
        if a != b:
            print(f"  item {item.id}: here {a}, served {b}")
    print(f"served: likelihoods {'come' if served.rates else 'do not come'}, so that rating is for the process alone")


if __name__ == "__main__":
    main()
