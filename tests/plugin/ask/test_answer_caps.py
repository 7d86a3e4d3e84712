"""Caps on answers: which of several is sent, what the record says of it, and what truncated answers do to a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
from fake_server import JsonServer, completion

from pytest_adaptive_eval.tasks import FAMILIES

GATE = '[[eval.gate]]\nmetric = "{metric}"\nat_least = 0.3\n'


class Run:
    """A run against a server that answers right, unless `cuts` says that it truncates the answer to a prompt."""

    def __init__(self, lab: Any, cuts: Callable[[str], bool] = lambda _: False) -> None:
        self.lab, self.cuts = lab, cuts
        self.sent: list[int] = []
        self.right = {
            family.item(level, seed).prompt: family.item(level, seed).answer
            for family in [FAMILIES["addition"]]
            for level in range(1, 4)
            for seed in range(200)
        }

    def _answer(self, body: Any, _: Any) -> tuple[dict[str, Any], int]:
        prompt = body["messages"][-1]["content"]
        if prompt not in self.right:
            return completion("m", "ok"), 200
        self.sent.append(body["max_tokens"])
        reply = completion("m", self.right[prompt])
        reply["usage"]["prompt_tokens"] = len(prompt)
        if self.cuts(prompt):
            reply["choices"][0]["finish_reason"] = "length"
        return reply, 200

    def __call__(self, text: str, metric: str = "accuracy") -> dict[str, Any]:
        """Run a TOML file in which URL is the model, and return the record of its interview."""
        with JsonServer(["m"], self._answer) as running:
            (self.lab.path / "adaptive-eval.toml").write_text(
                text.replace("URL", f"{running.url}#m") + GATE.format(metric=metric)
            )
            self.lab.run()
        interview: dict[str, Any] = self.lab.record["interviews"][0]
        return interview


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("settings", "cap"),
    [
        ("", 1024),
        ("model_options = { reasoning = true }\n", 16384),
        ("model_options = { max_tokens = 7 }\n", 7),
        ("model_options = { max_tokens = 7, reasoning = true }\nmax_tokens = 4096\n", 4096),
    ],
)
def test_a_task_is_asked_with_the_users_cap_and_the_record_says_it(lab: Any, settings: str, cap: int) -> None:
    run = Run(lab)
    interview = run(f'[[eval]]\ntask = "addition"\nlevels = 1\nqueries = 3\nmodel = "URL"\n{settings}', "auc")
    assert set(run.sent) == {cap}
    assert interview["subject"]["decoding"]["max_tokens"] == cap


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("options", "caps"), [("", [5, 1024]), ("model_options = { max_tokens = 9 }\n", [9])])
def test_an_items_own_cap_holds_where_the_user_sets_none(lab: Any, options: str, caps: list[int]) -> None:
    run = Run(lab)
    items: list[dict[str, Any]] = [
        {"id": str(n), "prompt": prompt, "answer": answer} for n, (prompt, answer) in enumerate(run.right.items())
    ]
    items = [{**item, "meta": {"max_tokens": 5}} if n % 2 else item for n, item in enumerate(items)]
    (lab.path / "own.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    interview = run(f'[[eval]]\nbank = "own.jsonl"\nstop = "budget"\nbudget = 30\nmodel = "URL"\n{options}')
    assert sorted(set(run.sent)) == caps
    assert interview["subject"]["decoding"]["max_tokens"] == (caps if len(caps) > 1 else caps[0])


@pytest.mark.slow
def test_truncated_answers_are_told_in_the_verdict(lab: Any) -> None:
    prompts = [FAMILIES["addition"].item(level, seed).prompt for level in (1, 2) for seed in range(20)]
    run = Run(lab, cuts=set(prompts[::8]).__contains__)
    run('[[eval]]\ntask = "addition"\nlevels = 2\nqueries = 20\nmodel = "URL"\nmax_tokens = 16\n', "auc")
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    told = " ".join(lab.record["gates"][0]["verdict"]["notes"])
    cut = sum(answer["status"] == "truncated" for answer in lab.record["interviews"][0]["administrations"])
    assert f"{cut} of 40 answers were truncated at 16 tokens: raise max_tokens" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("half", "outcome", "accuracy"),
    [
        (False, "PASS", [1.0, 1.0, 1.0]),
        (True, "INCONCLUSIVE", [0.0]),  # 10 questions are few
    ],
)
def test_a_climb_of_truncated_answers_is_graded_as_they_are(
    lab: Any, half: bool, outcome: str, accuracy: list[float]
) -> None:
    run = Run(lab, cuts=lambda _: True)
    if half:
        run.right = dict.fromkeys(run.right, "So first I add")
    options = "model_options = { max_tokens = 16 }\n"
    interview = run(f'[[eval]]\ntask = "addition"\nlevels = 3\nqueries = 10\nmodel = "URL"\n{options}', "auc")
    assert [outcome for _, outcome in lab.outcomes()] == [outcome]
    assert interview["error"] == ""
    assert (interview["levels"] or {}).get("accuracy") == accuracy
    asked = interview["asked"]
    warning = f"addition: {asked} of {asked} answers were truncated at 16 tokens: raise max_tokens"
    assert lab.record["warnings"] == [warning]


def test_a_cap_for_a_model_without_one_is_refused(lab: Any) -> None:
    lab.toy()
    lab.bank()
    lab.tests(
        'import pytest\n@pytest.mark.adaptive_eval("toy.jsonl", max_tokens=5)\n'
        "def test_toy(item, model):\n    assert item.grade(model.generate(item.prompt))\n"
    )
    result = lab.run()
    assert "max_tokens is 5, and nothing caps the answers of 'model'" in " ".join(result.stdout.str().split())
