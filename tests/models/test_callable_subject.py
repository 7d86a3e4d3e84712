"""Any callable as a subject."""

from types import SimpleNamespace

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.calling import CallableModel

ITEM = Item(id="a", prompt="hello?", answer="hello?")


@pytest.mark.parametrize(
    "reply",
    [
        "hello?",
        SimpleNamespace(content="hello?"),
        {"content": "hello?"},
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="hello?"))]),
        {"choices": [{"message": {"content": "hello?"}}]},
    ],
    ids=["text", "langchain", "message", "litellm", "json"],
)
def test_replies_of_several_libraries_are_read(reply):
    assert CallableModel(lambda _: reply, "mine").score(ITEM) == 1.0


def test_prompt_and_messages_are_passed_on():
    asked: list[object] = []
    turn = {"role": "user", "content": "hello?"}
    CallableModel(asked.append, "mine").answer([ITEM, Item(id="b", messages=(turn,), answer="x")])
    CallableModel(asked.append, "mine", messages=True).answer([ITEM])
    assert asked == ["hello?", [turn], [turn]]


def test_exceptions_and_other_replies_are_faults_and_blank_ones_empty():
    def slow(_):
        raise TimeoutError("too slow")

    (late,) = CallableModel(slow, "mine").answer([ITEM])
    assert (late.status, late.detail) == (Status.TIMEOUT, "TimeoutError: too slow")
    (odd,) = CallableModel(lambda _: 7, "mine").answer([ITEM])
    assert odd.status is Status.ERROR
    assert "the callable returned int, expected a text" in odd.detail
    (blank,) = CallableModel(lambda _: " ", "mine").answer([ITEM])
    assert blank.status is Status.EMPTY


def test_pictures_and_what_cannot_be_called_are_refused():
    with pytest.raises(ConfigError, match="'none' is not callable"):
        CallableModel("none", "mine")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="item 'b' has an image, and the callable 'mine' takes texts"):
        CallableModel(str, "mine").prepare([Item(id="b", prompt="what?", images=("b.png",), answer="x")])


@pytest.mark.parametrize(("checkpoint", "lines"), [("", 1), ("v1", 0)])
def test_a_callable_without_a_checkpoint_says_once_that_its_answers_are_not_kept(caplog, checkpoint, lines):
    subject = CallableModel(str, "mine", checkpoint=checkpoint)
    subject.prepare([ITEM])
    subject.prepare([ITEM])
    assert len(caplog.messages) == lines
    assert all("'mine' are not kept" in line and 'checkpoint="..."' in line for line in caplog.messages)


def test_a_fixture_of_one_line_is_interviewed_and_says_that_its_answers_are_not_kept(pytester):
    pytester.makeconftest(
        "import pytest\nfrom pytest_adaptive_eval.models.calling import CallableModel\n"
        "@pytest.fixture(scope='module')\ndef model():\n"
        "    return CallableModel(lambda prompt: prompt.rstrip('?'), 'echo')\n"
    )
    (pytester.path / "q.jsonl").write_text(
        "".join(f'{{"id": "q{n}", "prompt": "{n}?", "answer": "{n}"}}\n' for n in range(30))
    )
    pytester.makepyfile(
        "import pytest\n@pytest.mark.adaptive_eval(bank='q.jsonl', budget=30)\n"
        "def test_q(item, model):\n    assert item.grade(model.generate(item))\n"
        "@pytest.mark.adaptive_gate('q', at_least=0.5)\n"
        "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    )
    result = pytester.runpytest_inprocess("--adaptive-eval")
    assert result.ret == 0
    sentence = "answers of 'echo' are not kept, since nothing identifies the model: give"
    assert result.stdout.str().count(f"adaptive-eval: {sentence}") == 1
    (record,) = (pytester.path / ".adaptive-eval" / "runs").glob("*.json")
    assert sentence in record.read_text()
