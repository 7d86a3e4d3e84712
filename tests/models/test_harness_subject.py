"""Models of lm-evaluation-harness as subjects give the answers of the harness's own run, item by item."""

import hashlib
import json
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.models import load_model, resolve
from pytest_adaptive_eval.models.base import SubjectIdentity

ROWS: list[dict[str, Any]] = [
    {"question": f"Which is number {n}?", "choices": [f"one {n}", f"two {n}", f"four and {n}"], "answer": n % 3}
    for n in range(20)
]


@pytest.fixture
def harness(monkeypatch, tmp_path):
    """Return a model of the harness whose answers and likelihoods are hashes of what it is asked."""
    pytest.importorskip("lm_eval")
    from lm_eval.api.model import LM

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    class Hashed(LM):
        def _number(self, *texts):
            return int(hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8], 16) / 2**32

        def loglikelihood(self, requests):
            return [(-9 * self._number(*request.args), False) for request in requests]

        def loglikelihood_rolling(self, requests):
            return [-9 * self._number(*request.args) for request in requests]

        def generate_until(self, requests):
            if any("broken" in request.args[0] for request in requests):
                raise RuntimeError("boom")
            return [f"four and {self._number(request.args[0]):.6f}" for request in requests]

        @property
        def tokenizer_name(self):
            return "hashed"

        def apply_chat_template(self, chat_history, add_generation_prompt=True):
            return "".join(f"<{turn['role']}>{turn['content']}" for turn in chat_history) + "<assistant>"

    return Hashed()


@pytest.fixture
def subject(harness):
    from pytest_adaptive_eval.extensions.hosts.harness import HarnessModel

    return HarnessModel(harness, SubjectIdentity("hashed"))


def own_run(harness, tmp_path, **task):
    """Return the samples of the harness's own run, in the order of `ROWS`."""
    from lm_eval.evaluator import simple_evaluate

    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings = {
        "task": "mine",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}},
        "test_split": "test",
        "doc_to_text": "{{question}}",
        **task,
    }
    samples = simple_evaluate(harness, tasks=[settings], bootstrap_iters=0)["samples"]["mine"]
    return sorted(samples, key=lambda sample: sample["doc_id"])


def items(**more):
    return [
        Item(
            id=f"q{n}",
            prompt=row["question"],
            choices=tuple(row["choices"]),
            answer=row["choices"][row["answer"]],
            **more,
        )
        for n, row in enumerate(ROWS)
    ]


@pytest.mark.parametrize(("normalization", "metric"), [("raw", "acc"), ("characters", "acc_norm")])
def test_likelihoods_and_scores_are_those_of_the_harness(harness, subject, tmp_path, normalization, metric):
    metrics = [{"metric": metric, "aggregation": "mean", "higher_is_better": True}]
    task = {"output_type": "multiple_choice", "doc_to_choice": "choices", "doc_to_target": "answer"}
    samples = own_run(harness, tmp_path, metric_list=metrics, **task)
    asked = items(likelihood=ChoiceLikelihood(normalization))
    completions = subject.answer(asked)
    for item, completion, sample in zip(asked, completions, samples, strict=True):
        logs = [float(log) for log, _ in sample["filtered_resps"]]
        assert completion.likelihood["log_likelihoods"] == pytest.approx(logs, rel=1e-12)
        assert item.grade(completion.text) == sample[metric]


def test_generated_answers_are_those_of_the_harness(harness, subject, tmp_path):
    task = {"output_type": "generate_until", "doc_to_target": "{{choices[answer]}}"}
    samples = own_run(harness, tmp_path, generation_kwargs={"until": ["\n"], "max_gen_toks": 8}, **task)
    completions = subject.answer(items())
    assert [completion.text for completion in completions] == [sample["resps"][0][0] for sample in samples]


def test_the_cap_of_an_evaluation_holds(harness, subject, monkeypatch):
    from pytest_adaptive_eval.models.caps import Cap

    sent = []
    monkeypatch.setattr(harness, "generate_until", lambda requests: [sent.append(r.args[1]) or "x" for r in requests])
    subject.cap = Cap(7, chosen=True)
    subject.answer([Item("a", "?", "x")])
    assert [settings["max_gen_toks"] for settings in sent] == [7]


def test_fault_of_one_item_is_its_own_error(subject):
    asked = [Item(id="a", prompt="fine?", answer="a"), Item(id="b", prompt="broken?", answer="b")]
    fine, broken = subject.answer(asked)
    assert fine.status is Status.OK
    assert (broken.status, broken.detail) == (Status.ERROR, "RuntimeError: boom")


def test_messages_go_through_the_chat_template(harness, subject):
    item = Item(id="a", messages=({"role": "user", "content": "hello"},), answer="a")
    (found,) = subject.answer([item])
    assert found.text == f"four and {harness._number('<user>hello<assistant>'):.6f}"


def test_pictures_are_refused(subject):
    with pytest.raises(
        ConfigError, match="item 'a' has an image, and models of lm-evaluation-harness are asked by text"
    ):
        subject.prepare([Item(id="a", prompt="what?", images=("a.png",), answer="a")])


def test_spec_names_backend_and_arguments(harness):
    kind, spec = resolve("lm-eval:dummy#pretrained=models/late")
    assert kind.arguments(spec) == ("dummy", "pretrained=models/late")
    assert kind.model_name(spec) == "late"
    loaded = load_model("lm-eval:dummy#pretrained=models/late", until=["\n"])
    assert loaded.identity.name == "late"
    assert loaded.answer([Item(id="a", prompt="a?", answer="a")])[0].text == "lol"


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("lm-eval:none", {}, "lm-eval:none# cannot be created .*no model for this name found"),
        ("lm-eval:dummy", {"until": "x"}, "until is 'x', expected a list of texts"),
        ("lm-eval:dummy", {"max_tokens": 0}, "max_tokens"),
        ("lm-eval:dummy#trust_remote_code=True", {}, "trust_remote_code would run code of the checkpoint"),
    ],
)
def test_mistakes_of_use(harness, spec, options, message):
    with pytest.raises(ConfigError, match=message):
        load_model(spec, **options)
