"""Models of providers by name, against servers that refuse what the providers refuse."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import completion
from provider_dialects import DIALECTS, served_provider

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.kinds import providers
from pytest_adaptive_eval.models.kinds.providers import PROVIDERS


@pytest.fixture
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The name of a provider whose address is a server of this process."""
    with served_provider(request.param, monkeypatch):
        yield request.param


@pytest.mark.parametrize("provider", sorted(PROVIDERS), indirect=True)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_model_by_name_answers(provider: str, temperature: float, caplog: pytest.LogCaptureFixture) -> None:
    model = load_model(f"{provider}:m", temperature=temperature)
    (answer,) = model.answer([Item("q", "question 1")])
    assert (answer.text, answer.status) == ("right", Status.OK)
    assert model.identity.name == "m"
    assert f"questions to {provider}:m go to http://127.0.0.1" in caplog.text
    model.close()


def test_every_provider_has_an_imitation() -> None:
    assert set(DIALECTS) == set(PROVIDERS)
    assert all(entry.address.startswith(("https://", "http://localhost", "{")) for entry in PROVIDERS.values())


def test_a_key_or_an_address_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="environment variable 'OPENAI_API_KEY', which is not set"):
        load_model("openai:gpt-x")
    with pytest.raises(ConfigError, match="the environment variable AZURE_OPENAI_ENDPOINT is not set"):
        load_model("azure:mine")
    with pytest.raises(ConfigError, match="'openai:' names no model: write openai:MODEL"):
        providers.ProviderKind().model_name("openai:")


def test_a_variable_makes_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.org/")
    assert providers.ProviderKind().arguments("azure:mine") == ("https://example.org/openai/v1", "mine")


def test_litellm_gets_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package, which reaches no provider here."""
    calls: list[dict[str, Any]] = []

    def complete(**arguments: Any) -> dict[str, Any]:
        calls.append(arguments)
        return completion("m", "right")

    def provider_of(name: str) -> None:
        if "/" not in name:
            raise ValueError(f"LLM Provider NOT provided: {name}")

    monkeypatch.setitem(sys.modules, "litellm", SimpleNamespace(completion=complete, get_llm_provider=provider_of))
    model = load_model("litellm:vertex_ai/m", max_tokens=7, revision="1", extra={"top_p": 0.5})
    assert model.answer([Item("q", "question")])[0].text == "right"
    assert calls[0]["model"] == "vertex_ai/m"
    assert (calls[0]["max_tokens"], calls[0]["temperature"], calls[0]["top_p"]) == (7, 0.0, 0.5)
    assert calls[0]["messages"] == [{"role": "user", "content": "question"}]
    assert (model.identity.checkpoint, model.identity.samples) == ("1", False)
    model.close()
    with pytest.raises(ConfigError, match="'litellm:m': LLM Provider NOT provided"):
        load_model("litellm:m")
