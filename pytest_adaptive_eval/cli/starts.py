"""First evaluations of the kinds that generate their questions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Start(NamedTuple):
    """The first evaluation of one kind.

    Args:
        models: Fewest and most models that take part, the candidate among them.
        text: Its lines of TOML, with ``{model}`` for the candidate, ``{others}`` for a list of the other models and
            ``{other}`` for the first of them, or the candidate again where there is none.
        note: Where the page on the kind is, and what to set.
    """

    models: tuple[int, int]
    text: str
    note: str


#: By the value of ``--kind``.
STARTS = {
    "ladder": Start(
        (1, 1),
        """[[eval]]
task = "addition"
model = {model}
levels = 5
queries = 20

[[eval.gate]]
metric = "auc"
at_least = 2.0  # levels mastered: set your own
""",
        "questions grow harder from level to level; other tasks are in docs/reference/task-families.md",
    ),
    "multimodal": Start(
        (1, 1),
        """[[eval]]
task = "caption"
model = {model}
policy = "decide"
levels = 3
queries = 50
formats = ["image+text", "text", "image"]
budget = "100%"

[[eval.gate]]
metric = "gain"  # accuracy with picture and words, above that with either alone
at_least = 0.1  # set your own
""",
        "pictures are asked with and without their words; your own questions go the same way with bank = FILE, see "
        "docs/how-to/test-image-use.md",
    ),
    "network": Start(
        (1, 2),
        """[[eval]]
kind = "network"
model = {model}
models = {{ interviewer = {other} }}

[eval.network]
topology = "line"
queries = 10
interviewer = "interviewer"

[[eval.network.node]]
task = "addition"
levels = 4

[[eval.network.node]]
task = "operations"
levels = 4

[[eval.gate]]
metric = "energy"
at_least = 0.3  # set your own
""",
        "a model writes the questions of two tasks and the candidate answers them; docs/reference/networks.md has more",
    ),
    "panel": Start(
        (3, 26),
        """[[eval]]
kind = "peers"
name = "panel"
model = {model}
peers = {others}

[eval.panel]
rounds = 20

[[eval.gate]]
metric = "score"
at_least = 3.0  # of 1 to 5: set your own
""",
        "the models set each other tasks and judge the answers; docs/reference/panels.md has more",
    ),
}


def written(kind: str, models: Sequence[str]) -> str:
    """Return the lines of a file for as many models as a kind takes, the candidate first."""
    first, *others = map(json.dumps, models)
    text = STARTS[kind].text.format(
        model=first, other=others[0] if others else first, others="\n".join(["[", *_peers(models), "]"])
    )
    return f"# Written by adaptive-eval init --kind {kind}.\n\n{text}"


def _peers(models: Sequence[str]) -> Iterator[str]:
    """Yield the members after the candidate; one whose name is taken gets its own, and a system text to edit."""
    names = [re.split(r"[/#]", model.rstrip("/"))[-1] for model in models]
    for number, model in enumerate(models[1:], start=1):
        if names[number] not in names[:number]:
            yield f"  {json.dumps(model)},"
            continue
        system = f', system = "You are expert {number + 1}."' if model in models[:number] else ""
        yield f'  {{ name = "{names[number]}-{number + 1}", model = {json.dumps(model)}{system} }},'
