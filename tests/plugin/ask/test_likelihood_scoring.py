"""Evaluations that are scored by likelihood: what is asked, recorded, resumed and refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

#: A model that prefers the choice "yes" on even questions; it notes the prompts that it reads.
CONFTEST = """
import os, pytest
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

class Own(Model):
    rates_texts = True

    def answer(self, items):
        out = []
        for place, item in enumerate(items):
            with open("asked.txt", "a") as file:
                print(repr(item.prompt), file=file)
            even = int(item.id[1:]) % 2 == 0
            result = item.likelihood_result(
                [-1.0 if (c.text == "yes") == even else -2.0 for c in item.continuations]
            )
            out.append(Completion(result.text, score=result.score, likelihood=result.facts))
        return out

@pytest.fixture(scope="session")
def model():
    return Own(SubjectIdentity("m", "checkpoint"))
"""
TOML = """
[[eval]]
bank = "b.jsonl"
ask = "likelihood-bytes"
template = "{examples}Q: {prompt}\\nA:"
examples = "examples.jsonl"
budget = 20
stop = "budget"

[[eval.gate]]
at_least = 0.1
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    items = [{"id": f"q{n}", "prompt": f"{n}?", "answer": "yes", "choices": ["yes", "no"]} for n in range(24)]
    pytester.path.joinpath("b.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    example = {"id": "e", "prompt": "Is it?", "answer": "no", "choices": ["yes", "no"]}
    pytester.path.joinpath("examples.jsonl").write_text(json.dumps(example) + "\n")
    return pytester


def record(project: pytest.Pytester) -> dict[str, Any]:
    project.runpytest_subprocess("--adaptive-eval", "--adaptive-eval-record", "r.json")
    return json.loads((project.path / "r.json").read_text())


@pytest.mark.slow
def test_the_record_has_likelihoods_and_presentation(project: pytest.Pytester) -> None:
    project.path.joinpath("adaptive-eval.toml").write_text(TOML)
    (interview,) = record(project)["interviews"]
    assert "'Q: Is it?\\nA: no\\n\\nQ: 3?\\nA:'" in (project.path / "asked.txt").read_text().splitlines()
    assert interview["bank"]["presentation"]["template"] == "{examples}Q: {prompt}\nA:"
    assert interview["bank"]["presentation"]["likelihood"]["normalization"] == "bytes"
    assert len(interview["administrations"]) == 20
    for entry in interview["administrations"]:
        even = int(entry["item"][1:]) % 2 == 0
        logs = [-1.0, -2.0] if even else [-2.0, -1.0]
        assert entry["likelihood"] == {
            "normalization": "bytes",
            "log_likelihoods": logs,
            "scores": [logs[0] / 3, logs[1] / 2],
        }
        # -1/3 against -2/2, and -2/3 against -1/2
        assert (entry["text"], entry["score"]) == (("yes", 1.0) if even else ("no", 0.0))


@pytest.mark.slow
def test_a_test_that_passes_the_prompt_alone_gets_the_choice(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_b="""
        import pytest

        @pytest.mark.adaptive_eval(bank="b.jsonl", budget=20, stop="budget", ask="likelihood")
        def test_b(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    entries = record(project)["interviews"][0]["administrations"]
    assert {entry["status"] for entry in entries} == {"ok"}
    assert all(entry["score"] == (int(entry["item"][1:]) % 2 == 0) for entry in entries)
    assert all(entry["likelihood"]["normalization"] == "raw" for entry in entries)


@pytest.mark.slow
def test_a_resumed_run_keeps_the_likelihoods_and_asks_nothing_again(project: pytest.Pytester) -> None:
    project.path.joinpath("adaptive-eval.toml").write_text(TOML)
    project.makepyfile(
        test_stop="""
        def test_stop(adaptive_eval):
            import os
            if not os.path.exists("once"):
                open("once", "w").close()
                os._exit(9)
            assert adaptive_eval["b"].accuracy.at_least(0.1)
        """
    )
    project.runpytest_subprocess("--adaptive-eval")
    asked = (project.path / "asked.txt").read_text()
    assert len(asked.splitlines()) == 20
    (interview,) = record(project)["interviews"]
    assert (project.path / "asked.txt").read_text() == asked
    assert all(entry["resumed"] and entry["likelihood"]["scores"] for entry in interview["administrations"])


@pytest.mark.slow
def test_another_template_does_not_resume(project: pytest.Pytester) -> None:
    project.path.joinpath("adaptive-eval.toml").write_text(TOML)
    first = record(project)["interviews"][0]["bank"]["content_hash"]
    project.path.joinpath("adaptive-eval.toml").write_text(TOML.replace("Q:", "Question:"))
    second = record(project)["interviews"][0]
    assert second["bank"]["content_hash"] != first
    assert not any(entry["resumed"] for entry in second["administrations"])


@pytest.mark.slow
def test_a_model_without_likelihoods_is_refused_at_the_first_question(project: pytest.Pytester) -> None:
    project.path.joinpath("adaptive-eval.toml").write_text(TOML)
    project.makeconftest(CONFTEST.replace("rates_texts = True", "rates_texts = False"))
    result = project.runpytest_subprocess("--adaptive-eval")
    assert result.ret == 4
    result.stdout.fnmatch_lines(
        ["*b: items are scored by the likelihoods of texts, which 'model' (Own) does not give*"]
    )
    assert not (project.path / "asked.txt").exists()


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"{prompt}": "{query}"},
            r"template has the field \{query\}, expected \{prompt\}, \{choices\}, \{examples\}, ",
        ),
        ({"{examples}": ""}, r"the template has no \{examples\}"),
        ({'examples = "examples.jsonl"': ""}, "there are none: name a file of items as examples"),
        ({"likelihood-bytes": "likelihood-byte"}, "ask 'likelihood-byte' is not known; .*bytes"),
        ({"budget = 20": "budget = 20\nshots = 3"}, "shots is gone: write as many items into the file of examples"),
        (
            {"budget = 20": "budget = 20\nsamples = 3"},
            'samples goes with written answers, and ask = "likelihood-bytes" has none',
        ),
        ({"budget = 20": 'budget = 20\nformats = "all"'}, "formats and a template exclude each other"),
        (
            {'"b.jsonl"': '"examples.jsonl"', 'examples = "e': 'examples = "none-e'},
            "no bank at .*none-examples",
        ),
        ({'"b.jsonl"': '"free.jsonl"'}, "free.jsonl: item 'q0' has no choices, expected two or more"),
        ({'"b.jsonl"': '"wrong.jsonl"'}, "item 'q0': none of its choices is graded as right"),
        ({'"b.jsonl"': '"silent.jsonl"'}, "item 'q0' has no answer, and the grader 'choice' needs one"),
    ],
)
def test_a_mistake_is_told_before_anything_is_asked(
    project: pytest.Pytester, change: dict[str, str], problem: str
) -> None:
    items = {
        "free": {"id": "q0", "prompt": "0?", "answer": "yes"},
        "wrong": {"id": "q0", "prompt": "0?", "answer": "maybe", "grader": "exact", "choices": ["yes", "no"]},
        "silent": {"id": "q0", "prompt": "0?", "choices": ["yes", "no"]},
    }
    for name, item in items.items():
        project.path.joinpath(f"{name}.jsonl").write_text(json.dumps(item) + "\n")
    text = TOML
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new, 1)
    project.path.joinpath("adaptive-eval.toml").write_text(text)
    result = project.runpytest_inprocess("--adaptive-eval")
    assert result.ret == 4
    output = " ".join([*result.outlines, *result.errlines])
    assert re.search(problem, output), output
    assert not (project.path / "asked.txt").exists()
