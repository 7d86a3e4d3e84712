"""The key of an answer is the request that goes out, and a later run asks in the form of the one that began."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion, failure

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.endpoint.model import EndpointModel
from pytest_adaptive_eval.models.request_keys import completion_key

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ITEM = Item("a", "City?", json.dumps(SCHEMA), "schema")
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}


class Server:
    """Keeps what it is sent, and answers each request with a schema by the next of some codes, then with 200."""

    def __init__(self, *codes: int, words: str = "no schemas here", accepts: bool = True) -> None:
        self.codes, self.words, self.accepts = list(codes), words, accepts
        self.bodies: list[dict[str, Any]] = []
        self.fails = 0  #: Code of the reply to every request; 0 for an answer.

    def __call__(self, body: Any, _headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        self.bodies.append(body)
        if self.fails:
            return failure("gone"), self.fails
        if not self.accepts and "top_k" in body:
            return failure("unknown field top_k"), 400
        if "response_format" in body and self.codes:
            return failure(self.words), self.codes.pop(0)
        return completion("m", '{"city": "Ulm"}'), 200

    @property
    def with_schema(self) -> list[bool]:
        return ["response_format" in body for body in self.bodies]


@pytest.fixture
def served() -> Iterator[Any]:
    """A function that serves, and loads a model."""
    opened: list[Any] = []

    def load(server: Server, **options: Any) -> EndpointModel:
        running = JsonServer(["m"], server)
        opened.append(running)
        running.__enter__()
        model = EndpointModel.load(running.url, "m", retries=0, **options)
        opened.append(model)
        return model

    yield load
    for thing in reversed(opened):
        if isinstance(thing, EndpointModel):
            thing.close()
        else:
            thing.__exit__(None, None, None)


@pytest.mark.parametrize(
    "item",
    [
        ITEM,
        Item("b", "Which?", "7"),
        Item("c", messages=({"role": "user", "content": "Which?"},)),
        Item("d", "Which?", tools=(TOOL,)),
        Item("e", "Which?", meta={"max_tokens": 9}),
        Item("f", "Which?", "A", "choice", choices=("one", "two")),
    ],
    ids=lambda item: item.id,
)
def test_the_bytes_of_the_key_are_those_that_go_out(served: Any, item: Item) -> None:
    server = Server()
    model = served(server)
    model.prepare([item])
    request = model.request(item)
    assert model.answer([item])[0].status is Status.OK
    assert json.loads(request) == server.bodies[-1]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({}, {}, True),
        ({}, {"timeout": 9.0}, True),
        ({}, {"temperature": 0.5}, False),
        ({}, {"max_tokens": 9}, False),
        ({}, {"extra": {"top_k": 3}}, False),
        ({}, {"omit": ["temperature"]}, False),
        ({}, {"top_p": 0.5}, False),
    ],
)
def test_what_changes_the_body_changes_the_key(
    served: Any, first: dict[str, Any], second: dict[str, Any], same: bool
) -> None:
    one, other = served(Server(), **first), served(Server(), **second)
    assert (one.request(ITEM) == other.request(ITEM)) is same


def test_another_schema_on_one_prompt_is_another_request(served: Any) -> None:
    model = served(Server())
    other = Item("a", "City?", json.dumps({**SCHEMA, "required": []}), "schema")
    graded = Item("a", "City?", "Ulm", "exact")
    assert len({completion_key(model, item) for item in (ITEM, other, graded)}) == 3


@pytest.mark.parametrize(
    ("codes", "sent"),
    [
        ([], "sent"),
        ([500], "sent"),
        ([500, 500], "sent"),
        ([400], "refused"),
        ([415], "refused"),
        ([422], "refused"),
        ([501], "refused"),
        ([500, 400], "refused"),
        ([500, 500, 500], "refused"),
    ],
)
def test_a_fault_of_the_server_is_no_refusal_of_schemas(
    served: Any, codes: list[int], sent: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(*codes)
    model = served(server)
    model.prepare([ITEM])
    assert model.form([ITEM]) == {"schemas": sent}
    assert model.form([Item("b", "Which?", "7")]) == {}
    server.bodies.clear()
    model.answer([ITEM])
    assert server.with_schema == [sent == "sent"]
    told = [line for line in (*model.warnings, caplog.text) if "no schemas here" in line]
    assert len(told) == (2 if sent == "refused" else 0)


def test_a_server_that_answers_nothing_while_schemas_are_tried_ends_the_run(served: Any) -> None:
    server = Server()
    model = served(server)
    server.fails = 500
    with pytest.raises(ConfigError, match=r"answers no request now: .*gone"):
        model.prepare([ITEM])


def test_a_resumed_run_asks_in_the_form_of_the_run_that_began(served: Any) -> None:
    began = served(Server(400))
    began.prepare([ITEM])
    again = served(Server(accepts=False))  # this opening leaves a field out, and would send the schema
    assert again.request(ITEM) != began.request(ITEM)
    again.resume(began.opening)
    again.prepare([ITEM])
    assert again.request(ITEM) == began.request(ITEM)
    assert (again.opening, again.form([ITEM])) == (began.opening, {"schemas": "refused"})


@pytest.mark.parametrize(
    "change",
    [{"settings": "other"}, {"cap_field": 7}, {"accepted": {"top_k": "all"}}],
    ids=["settings", "field", "version"],
)
def test_an_opening_of_other_settings_or_of_another_version_is_not_taken(served: Any, change: dict[str, Any]) -> None:
    began, again = served(Server(400)), served(Server())
    began.prepare([ITEM])
    before = again.opening
    again.resume({**began.opening, **change})
    assert again.opening == before


def test_a_cap_that_an_evaluation_set_stays_in_a_resumed_form(served: Any) -> None:
    from pytest_adaptive_eval.models.caps import Cap

    began, again = served(Server()), served(Server())
    again.cap = Cap(9, chosen=True)
    again.resume({**began.opening, "reasons": True})
    assert again.cap == Cap(9, chosen=True)
    assert again.identity.decoding["max_tokens"] == 16384
