"""Tasks of Inspect with tools and several turns answer the items of a bank."""

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.hosts.inspect_subject import InspectModel
from pytest_adaptive_eval.items.item import Item, Status

pytest.importorskip("inspect_ai")

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import Generate, TaskState, generate, solver, use_tools
from inspect_ai.tool import tool

# streams that Inspect itself leaves open
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),  # of what Inspect retries with
]


def counted(output):
    """Return an output with its tokens, which Inspect would count by a file of the network."""
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def reply(text, **more):
    return counted(ModelOutput.from_content("mockllm/model", text, **more))


@tool
def add():
    async def execute(first: int, second: int) -> str:
        """Add two numbers.

        Args:
            first: a number
            second: a number
        """
        return str(first + second)

    return execute


@solver
def twice():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        state.messages.append(ChatMessageUser(content=f"You said {state.output.completion}. Are you sure?"))
        return await generate(state)

    return solve


@scorer(metrics=[accuracy()])
def by_metadata():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if state.metadata.get("kept") else "I")

    return score


def test_a_task_with_tools_answers_an_item():
    call = counted(ModelOutput.for_tool_call("mockllm/model", "add", {"first": 2, "second": 3}))
    task = Task(solver=[use_tools(add()), generate()])
    subject = InspectModel(task, get_model("mockllm/model", custom_outputs=[call, reply("It is 5.")]), name="adder")
    item = Item("a", "What is 2 + 3?", "5", "numeric")
    (completion,) = subject.answer([item])
    assert (completion.text, completion.status) == ("It is 5.", Status.OK)
    assert subject.identity.name == "adder"


def test_the_last_of_several_turns_counts_and_items_keep_their_order():
    def answered(messages, tools, choice, config):
        asked = [message.text for message in messages if message.role == "user"]
        return reply(f"{asked[0][-1]}, turn {len(asked)}")

    subject = InspectModel(Task(solver=twice()), get_model("mockllm/model", custom_outputs=answered))
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "say b"})
    completions = subject.answer(
        [Item("a", "say a", "x"), Item("b", messages=chat, answer="x"), Item("c", "say c", "x")]
    )
    assert [completion.text for completion in completions] == ["a, turn 2", "b, turn 2", "c, turn 2"]


def test_an_item_is_asked_as_the_sample_of_its_id_and_scored_by_the_task():
    samples = [Sample(id="s1", input="from the task", target="x", metadata={"kept": True})]
    task = Task(dataset=samples, solver=generate(), scorer=by_metadata())
    asked = []

    def answered(messages, tools, choice, config):
        asked.append(messages[-1].text)
        return reply("done")

    subject = InspectModel(task, get_model("mockllm/model", custom_outputs=answered), scorer="by_metadata")
    first, second = subject.answer([Item("s1", "from the bank", "x"), Item("s2", "other", "x")])
    assert sorted(asked) == ["from the task", "other"]
    assert (first.score, second.score) == (1.0, 0.0)
    missing = InspectModel(task, get_model("mockllm/model", custom_outputs=answered), scorer="match")
    (completion,) = missing.answer([Item("s1", "?", "x")])
    assert completion.status is Status.ERROR
    assert "no score of 'match'; found: by_metadata" in completion.detail


def test_faults_and_cut_answers_are_no_wrong_answers():
    def answered(messages, tools, choice, config):
        if messages[-1].text == "cut":
            return reply("half an", stop_reason="max_tokens")
        if messages[-1].text == "nothing":
            return reply(" ")
        raise RuntimeError("no connection")

    subject = InspectModel(Task(solver=generate()), get_model("mockllm/model", custom_outputs=answered))
    items = [Item("a", "cut", "x"), Item("b", "nothing", "x"), Item("c", "fails", "x")]
    cut, empty, failed = subject.answer(items)
    assert [one.status for one in (cut, empty, failed)] == [Status.TRUNCATED, Status.EMPTY, Status.ERROR]
    assert "no connection" in failed.detail


def test_pictures_of_items_that_are_no_samples_are_refused():
    subject = InspectModel(Task(dataset=[Sample(id="s1", input="?")], solver=generate()), "mockllm/model")
    subject.prepare([Item("s1", "?", "x", images=("a.png",))])
    with pytest.raises(ConfigError, match="item 'p' has an image"):
        subject.prepare([Item("p", "?", "x", images=("a.png",))])


def test_an_item_of_several_turns_is_asked_turn_by_turn():
    def answered(messages, tools, choice, config):
        return reply(" / ".join(message.text for message in messages))

    subject = InspectModel(Task(solver=generate()), get_model("mockllm/model", custom_outputs=answered))
    item = Item("a", "one", "x", turns=("two",))
    subject.prepare([item])
    completion = subject.complete_anew(item)
    assert completion.text == "one\n\n[turn 2] two\n\none / one / two"


@pytest.mark.parametrize(("name", "scorer", "fix"), [("s1", "", "rename the item"), ("a", "match", "omit scorer")])
def test_turns_that_the_task_would_not_ask_are_refused(name, scorer, fix):
    task = Task(dataset=[Sample(id="s1", input="?")], solver=generate())
    subject = InspectModel(task, "mockllm/model", scorer=scorer)
    with pytest.raises(ConfigError, match=f"item '{name}' has turns.*{fix}"):
        subject.prepare([Item(name, "one", "x", turns=("two",))])
