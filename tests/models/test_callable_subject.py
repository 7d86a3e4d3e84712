"""Any callable as a subject."""

import asyncio
import threading
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
        SimpleNamespace(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"}, "?"]),
        {"content": "hello?"},
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="hello?"))]),
        {"choices": [{"message": {"content": "hello?"}}]},
    ],
    ids=["text", "langchain", "parts", "message", "litellm", "json"],
)
def test_replies_of_several_libraries_are_read(reply):
    assert CallableModel(lambda _: reply, "mine").score(ITEM) == 1.0


def test_prompt_and_messages_are_passed_on():
    asked: list[object] = []
    turn = {"role": "user", "content": "hello?"}
    CallableModel(asked.append, "mine").answer([ITEM, Item(id="b", messages=(turn,), answer="x")])
    CallableModel(asked.append, "mine", messages=True).answer([ITEM])
    assert asked == ["hello?", [turn], [turn]]


@pytest.mark.parametrize("content", [None, "", [], [{"type": "thinking", "thinking": "hm"}]])
def test_a_message_without_a_text_is_an_empty_answer(content):
    for reply in (SimpleNamespace(content=content), {"choices": [{"message": {"content": content}}]}):
        (answered,) = CallableModel({"hello?": reply}.get, "mine").answer([ITEM])
        assert (answered.status, answered.text) == (Status.EMPTY, "")


@pytest.mark.parametrize("reply", [None, 7, b"text", {"text": "a"}, {"choices": []}, ["a"]])
def test_what_is_no_message_is_a_fault(reply):
    (answered,) = CallableModel(lambda _: reply, "mine").answer([ITEM])
    assert answered.status is Status.ERROR


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


ITEMS = [Item(id=f"q{n}", prompt=f"{n}", answer=f"{n}") for n in range(12)]


class Meeting:
    """A callable that answers once `parties` calls are open at the same time, and counts the open ones."""

    def __init__(self, parties: int) -> None:
        self.barrier, self.open, self.most = threading.Barrier(parties), 0, 0
        self.counting = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self.counting:
            self.open += 1
            self.most = max(self.most, self.open)
        self.barrier.wait(timeout=60)
        with self.counting:
            self.open -= 1
        return prompt


def answered_ahead(subject: CallableModel) -> list[str]:
    """Answers to all items by the way of the pipeline, in the order of the items."""
    came: dict[int, str] = {}
    subject.begin([(item, 0) for item in ITEMS], lambda index, completion: came.update({index: completion.text}))
    while len(came) < len(ITEMS):
        subject.take_arrived(wait=True)
    return [came[index] for index in range(len(ITEMS))]


def test_a_plain_function_is_asked_at_once_where_it_says_so():
    meeting = Meeting(4)
    subject = CallableModel(meeting, "mine", concurrency=4)
    assert (subject.waits_apart, subject.shared_batch) == (True, 4)
    assert answered_ahead(subject) == [item.answer for item in ITEMS]
    assert [completion.text for completion in subject.answer(ITEMS)] == [item.answer for item in ITEMS]
    assert meeting.most == 4
    subject.close()


def test_a_plain_function_is_else_called_in_the_thread_that_asks():
    subject = CallableModel(lambda _: threading.current_thread().name, "mine")
    assert not subject.waits_apart
    assert subject.generate("where?") == threading.current_thread().name


def test_an_async_function_is_asked_at_once_in_one_event_loop():
    loops, open_now, most, eight = set(), 0, 0, asyncio.Event()

    async def answer(prompt: str) -> str:
        nonlocal open_now, most
        loops.add(asyncio.get_running_loop())
        open_now += 1
        most = max(most, open_now)
        if most == 8:
            eight.set()
        await eight.wait()
        open_now -= 1
        return prompt

    subject = CallableModel(answer, "mine")
    assert answered_ahead(subject) == [item.answer for item in ITEMS]
    assert subject.generate("11") == "11"
    assert (len(loops), most, subject.shared_batch) == (1, 8, 8)
    subject.close()


def test_an_async_function_is_asked_one_by_one_where_it_says_so():
    open_now = 0

    async def answer(prompt: str) -> str:
        nonlocal open_now
        open_now += 1
        await asyncio.sleep(0)
        alone, open_now = open_now == 1, open_now - 1
        return prompt if alone else "two at once"

    subject = CallableModel(answer, "mine", concurrency=1)
    assert [completion.text for completion in subject.answer(ITEMS)] == [item.answer for item in ITEMS]
    assert not subject.waits_apart
    subject.close()


def test_faults_of_calls_at_once_are_faults_of_their_items():
    def odd(prompt: str) -> str:
        if prompt == "3":
            raise TimeoutError("too slow")
        return prompt

    came: dict[int, Status] = {}
    subject = CallableModel(odd, "mine", concurrency=2)
    subject.begin([(item, 0) for item in ITEMS[:5]], lambda index, completion: came.update({index: completion.status}))
    while len(came) < 5:
        subject.take_arrived(wait=True)
    assert [came[index] for index in range(5)] == [Status.OK, Status.OK, Status.OK, Status.TIMEOUT, Status.OK]
    subject.close()
    with pytest.raises(ConfigError, match="concurrency is 0, expected a whole number of at least 1"):
        CallableModel(odd, "mine", concurrency=0)
