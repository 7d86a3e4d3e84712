"""Truncated answers in networks: what the verdict and the record tell of them, and when they void a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
from fake_server import JsonServer, completion

from pytest_adaptive_eval.tasks import FAMILIES

NETWORK = """
[[eval]]
kind = "network"
name = "web"
model = "{url}#pupil"
model_options = {{ {options} }}
models = {{ {models} }}
[eval.network]
queries = 10
{settings}
[[eval.network.node]]
name = "sums"
{node}
[[eval.gate]]
at_least = 0.3
"""
ADDITION = 'task = "addition"\nlevels = 3'
RIGHT = {
    FAMILIES["addition"].item(level, seed).prompt: FAMILIES["addition"].item(level, seed)
    for level in (1, 2, 3)
    for seed in range(300)
}


def of_level(level: int) -> Callable[[str], bool]:
    """Whether a prompt is of a level."""
    return lambda prompt: RIGHT[prompt].meta["level"] == level


class Run:
    """A run against a server that answers right; it truncates the answers to prompts that `cuts` names."""

    def __init__(self, lab: Any, cuts: Callable[[str], bool]) -> None:
        self.lab, self.cuts = lab, cuts
        self.sent: list[int] = []

    def _answer(self, body: Any, _: Any) -> tuple[dict[str, Any], int]:
        prompt = body["messages"][-1]["content"]
        if prompt in RIGHT:
            self.sent.append(body["max_tokens"])
            reply = completion(body["model"], str(RIGHT[prompt].answer))
            cut = self.cuts(prompt)
        else:
            reply = completion(body["model"], "ok")
            cut = body["model"] == "ann"
        if cut:
            reply["choices"][0]["finish_reason"] = "length"
        return reply, 200

    def __call__(
        self,
        node: str = ADDITION,
        options: str = "max_tokens = 16",
        settings: str = "",
        models: str = "",
        text: str = NETWORK,
    ) -> dict[str, Any]:
        """Run a network, and return its record."""
        self.lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
        with JsonServer(["pupil", "ann"], self._answer) as running:
            models = models.replace("URL", running.url)
            toml = text.format(url=running.url, options=options, models=models, settings=settings, node=node)
            (self.lab.path / "adaptive-eval.toml").write_text(toml)
            self.lab.run()
        return dict(self.lab.record["interviews"][0])


def test_some_truncated_answers_are_told_in_the_verdict(lab: Any) -> None:
    study = Run(lab, lambda prompt: int(RIGHT[prompt].answer) % 5 == 0)()
    count = study["account"]["nodes"][0]["counts"]["truncated"]
    assert 0 < count < 15
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    assert f"{count} of 30 cut at the cap" in lab.record["gates"][0]["verdict"]["notes"]
    sentence = f"{count} of 30 answers were truncated at 16 tokens: raise max_tokens"
    assert sentence in lab.record["gates"][0]["verdict"]["notes"]


def test_a_network_of_truncated_answers_grades_them_as_they_are(lab: Any) -> None:
    study = Run(lab, lambda _: True)()
    assert study["error"] == ""
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    assert study["account"]["nodes"][0]["scores"][0] == [1.0] * 10


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("options", "caps"), [("", [5, 1024]), ("max_tokens = 9", [9])])
def test_the_record_says_the_caps_that_were_sent(lab: Any, options: str, caps: list[int]) -> None:
    items: list[dict[str, Any]] = [
        {"id": str(n), "prompt": prompt, "answer": item.answer, "meta": {"max_tokens": 5} if n % 2 else {}}
        for n, (prompt, item) in enumerate(list(RIGHT.items())[:20])
    ]
    (lab.path / "own.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    run = Run(lab, lambda _: False)
    study = run('bank = "own.jsonl"', options)
    assert sorted(set(run.sent)) == caps
    assert study["members"][0]["decoding"]["max_tokens"] == (caps if len(caps) > 1 else caps[0])


@pytest.mark.slow
def test_truncated_replies_of_an_interviewer_are_told_with_its_cap(lab: Any) -> None:
    models = 'ann = { model = "URL#ann", options = { max_tokens = 33 } }'
    study = Run(lab, lambda _: False)(settings='interviewer = "ann"\nretries = 0', models=models)
    assert "5 of 5 replies of ann were truncated at 33 tokens: raise max_tokens" in study["notes"]
    assert study["account"]["truncated"] == {"ann": [5, 5]}


@pytest.mark.slow
def test_an_ablation_names_the_variants_whose_answers_were_truncated(lab: Any) -> None:
    text = NETWORK.replace('kind = "network"', 'kind = "ablation"\nseeds = 2').partition("[[eval.gate]]")[0]
    text += "[eval.variant.lower.network]\nqueries = 4\n"
    study = Run(lab, of_level(3))(text=text)
    assert study["error"] == ""
    first, second, *others = study["notes"]
    assert first == "as written: 10 of 30 cut at the cap"
    assert second.startswith("as written: 10 of 30 answers were truncated at 16 tokens")
    assert all(note.startswith("lower: ") for note in others)


@pytest.mark.slow
def test_a_cap_of_the_study_holds_for_every_model_without_its_own(lab: Any) -> None:
    models = 'ann = { model = "URL#ann", options = { max_tokens = 33 } }'
    run = Run(lab, lambda _: False)
    text = NETWORK.replace('name = "web"', 'name = "web"\nmax_tokens = 21')
    study = run(options="", settings='interviewer = "ann"\nretries = 0', models=models, text=text)
    assert set(run.sent) == {21}
    assert {member["name"]: member["decoding"]["max_tokens"] for member in study["members"]} == {"pupil": 21, "ann": 33}
