"""``kind = "ablation"``: MACEval's ablations as declared comparisons over models on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

# loaded once: an in-process run forgets the modules that it loads
from fake_server import PeerServer

import pytest_adaptive_eval.reports.page  # noqa: F401
from benchmarks.network_agents import chance, writer
from pytest_adaptive_eval.extensions.studies.network.ablation_kind import CONFIDENCE, over_seeds

NETWORK = """
[[eval]]
kind = "ablation"
name = "swaps"
model = "{url}#pupil"
models = {models}
seeds = 3
[eval.network]
queries = 4
interviewer = "ann"
[[eval.network.node]]
task = "addition"
levels = 3
[[eval.network.node]]
name = "second"
task = "operations"
levels = 2
"""
WEAK = """
[eval.variant."weak interviewer"]
network = { interviewer = "weak" }
"""
OTHERS = """
[eval.variant."role swap"]
interviewee = "poor"
[eval.variant."more queries"]
network = { queries = 8 }
[eval.variant."injected"]
network = { injected = 60 }
[eval.variant."static"]
network = { interviewer = "", node = [{ name = "addition", bank = "static.jsonl" }] }
[[eval.gate]]
at_least = 0.4
[[eval.gate]]
subject = "role swap"
at_least = 0.4
"""
MODELS = ("pupil", "poor", "ann", "weak")
WRITERS = {"ann": writer(), "weak": writer(broken=0.7)}


def said(model: str, text: str) -> str:
    """A pupil that is right up to level 2, a poor one, and interviewers that write well and badly."""
    if model in WRITERS:
        return WRITERS[model](text) if "of level" in text else "ok"
    numbers = [int(number) for number in re.findall(r"\d+", text.splitlines()[-1])]
    sign = re.search(r"\d ([-+*]) \d", text)
    if len(numbers) != 2 or sign is None:
        return "0"
    a, b = numbers
    right = {"+": a + b, "-": a - b, "*": a * b}[sign[1]]
    limit = 0.3 if model == "poor" else 0.9
    return str(right) if a < 100 and chance(model, text) < limit else "7777"


@pytest.fixture
def server() -> Iterator[PeerServer]:
    with PeerServer(dict.fromkeys(MODELS, 0.0), said) as running:
        yield running


def write(lab: Any, server: PeerServer, variants: str, *models: str) -> None:
    listed = ", ".join(f'{name} = "{server.url}#{name}"' for name in models)
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    items = "".join(
        f'{{"id": "a{level}-{n}", "prompt": "What is {n} + {level}?", "answer": "{n + level}", "grader": "numeric", '
        f'"meta": {{"level": {level}}}}}\n'
        for level in (1, 2, 3)
        for n in range(8)
    )
    (lab.path / "static.jsonl").write_text(items)
    text = NETWORK.replace("{models}", f"{{ {listed} }}").replace("{url}", server.url)
    (lab.path / "adaptive-eval.toml").write_text(text + variants)


@pytest.mark.slow
def test_an_interviewer_is_swapped(lab: Any, server: PeerServer) -> None:
    write(lab, server, WEAK, "ann", "weak")
    lab.run("--adaptive-eval-html=page.html")
    (study,) = lab.record["interviews"]
    assert (study["asked"], study["size"], study["unit"]) == (6, 6, "networks")
    values = study["account"]["values"]
    assert values["as written"]["error_rate of addition"] == [0.0, 0.0, 0.0]
    assert min(values["weak interviewer"]["error_rate of addition"]) > 0.3
    assert "area of second" in values["weak interviewer"]
    page = (lab.path / "page.html").read_text()
    for part in ("Changes", "weak interviewer", "error_rate of addition", "Student"):
        assert part in page


@pytest.mark.slow
def test_roles_queries_injected_errors_and_a_static_bank_are_compared(lab: Any, server: PeerServer) -> None:
    write(lab, server, OTHERS, "ann", "poor")
    lab.run()
    (study,) = lab.record["interviews"]
    assert study["error"] == ""
    rows = study["metrics"]["energy"]
    assert min(row["high"] - row["low"] for row in rows) > 0, "also where all seeds have one energy"
    assert dict(lab.outcomes())["swaps-energy[at-least-0.4]"] == "PASS"
    assert dict(lab.outcomes())["swaps-energy[at-least-0.4-of-role_swap]"] in ("FAIL", "INCONCLUSIVE")
    found = study["account"]["values"]
    written = found["as written"]
    assert over_seeds(np.subtract(found["role swap"]["energy"], written["energy"]).tolist(), CONFIDENCE).high < 0
    assert len(found["more queries"]["area of addition"]) == 3
    assert found["injected"]["error_rate of second"] == written["error_rate of second"]
    assert sum(found["static"]["area of addition"]) > sum(written["area of addition"])
    assert "error_rate of addition" not in found["static"]


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (
            "[eval.variant.x]\nnodes = { third = { levels = 1 } }",
            "nodes is gone: write all nodes of the variant under network",
        ),
        ('[eval.variant.x]\ninterviewee = "ann"', "'ann' is interviewed and an agent too"),
        ("[eval.variant.x]\nnetwork = { querys = 4 }", "querys"),
        ('[eval.variant.x]\ninterviewee = "bob"', "'bob' is not a model of this file: add it under models"),
        ("[eval.variant.x]", "the model 'weak' has no part in any variant"),
    ],
)
def test_mistakes(lab: Any, server: PeerServer, variants: str, message: str) -> None:
    write(lab, server, variants, "ann", "weak")
    result = lab.run()
    assert result.ret == 4
    assert message in " ".join((result.stderr.str() + result.stdout.str()).split())
    assert not server.asked
