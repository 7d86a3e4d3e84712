"""Models of providers, by name: ``openai:gpt-5-mini`` and others as kinds of models."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.models.kinds.endpoint import EndpointKind
from pytest_adaptive_eval.typed_tables import Count, FiniteSize, Table

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Model

#: Logger whose warnings the terminal shows at once.
_LOGGER = logging.getLogger("pytest_adaptive_eval")


class Provider(NamedTuple):
    """Address and key of an OpenAI-compatible provider.

    Args:
        address: Base of the API; ``{NAME}`` is the value of the environment variable NAME.
        key_env: Environment variable of the key; empty where none is needed.
        omit: Fields that it refuses and does not name, which are left out of each request.
    """

    address: str
    key_env: str
    omit: tuple[str, ...] = ()


#: Begins of the names of models by the provider that has them.
FAMILIES = {
    "gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic",
    "gemini": "gemini", "mistral": "mistral", "ministral": "mistral", "codestral": "mistral", "magistral": "mistral",
}  # fmt: skip
#: Fields that a provider refuses by name are left out after the first request, see `find_accepted_fields`.
PROVIDERS = {
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "azure": Provider("{AZURE_OPENAI_ENDPOINT}/openai/v1", "AZURE_OPENAI_API_KEY"),
    "bedrock": Provider("https://bedrock-mantle.{AWS_REGION}.api.aws/v1", "AWS_BEARER_TOKEN_BEDROCK"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", omit=("seed",)),
    "ollama": Provider("http://localhost:11434/v1", ""),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
}


def provider_variables(spec: str) -> list[str]:
    """Return the environment variables of the address and the key of a provider's model; none of other models."""
    provider = PROVIDERS.get(spec.partition(":")[0])
    if provider is None:
        return []
    return [*_variables(provider.address), *filter(None, [provider.key_env])]


def _variables(address: str) -> list[str]:
    return re.findall(r"{(\w+)}", address)


class ProviderKind(EndpointKind):
    """A model of a provider with an OpenAI-compatible address."""

    name = "provider"
    form = "PROVIDER:MODEL"
    help = f"a model of {', '.join(sorted(PROVIDERS))}"
    prefixes: tuple[str, ...] = tuple(f"{name}:" for name in PROVIDERS)

    def suggestion(self, spec: str) -> str:
        """Return the provider to write before the name of a well-known model; see `ModelKind`."""
        for begin, provider in FAMILIES.items():
            if spec.startswith(begin):
                return f"write {f'{provider}:{spec}'!r} for the model of that provider. Else "
        return super().suggestion(spec)

    def arguments(self, spec: str) -> tuple[str, str]:
        """Return the provider's address and the model's name.

        Raises:
            ConfigError: The address needs an environment variable that is not set.
        """
        name, _, model = spec.partition(":")
        address = PROVIDERS[name].address
        for variable in _variables(address):
            value = os.environ.get(variable, "").strip().rstrip("/")
            if not value:
                raise ConfigError(
                    f"model {spec!r}: its address is {address}, and the environment variable {variable} is not set: "
                    "set it"
                )
            address = address.replace(f"{{{variable}}}", value)
        return address, model

    def load(self, spec: str, options: Mapping[str, Any], cache: Path | None = None, *, chats: bool = False) -> Model:
        """Connect to the provider, with the key in its usual environment variable; see `ModelKind`."""
        provider = PROVIDERS[spec.partition(":")[0]]
        defaults: dict[str, Any] = {"key_env": provider.key_env, "omit": provider.omit}
        model = super().load(spec, {**defaults, **options}, cache, chats=chats)
        _LOGGER.warning("questions to %s go to %s", spec, self.arguments(spec)[0])
        return model

    def label(self, spec: str) -> str:
        """Return `spec`, which holds no secret."""
        return spec

    def model_name(self, spec: str) -> str:
        """Return the name after the provider's."""
        if name := spec.partition(":")[2].strip():
            return name
        raise ConfigError(f"{spec!r} names no model: write {spec}MODEL")


class LiteLLMSettings(Table, frozen=True, kw_only=True):
    """Options of a model by the package litellm.

    Args:
        revision: Your own name for the weights; without it no answer is kept for a later run.
        max_tokens: Cap on the tokens of an answer.
        temperature: 0 is greedy.
        concurrency: Requests at once.
        timeout: Seconds for an answer.
        extra: Further arguments of ``litellm.completion``.
    """

    revision: str = ""
    max_tokens: Count = 1024
    temperature: FiniteSize = 0.0
    concurrency: Count = 8
    timeout: FiniteSize = 120.0
    extra: dict[str, Any] | None = None


class LiteLLMKind(ModelKind):
    """A model of any provider that the package litellm reaches."""

    name = "litellm"
    form = "litellm:PROVIDER/MODEL"
    help = "a model by the package litellm"
    prefixes = ("litellm:",)
    model = "pytest_adaptive_eval.models.lite:LiteLLMModel"
    options = LiteLLMSettings.__struct_fields__
    extra = "litellm"
    remote = True

    def arguments(self, spec: str) -> tuple[str]:
        """Return the name that litellm knows the model by."""
        return (spec.removeprefix(self.prefixes[0]),)


REGISTERED = (ProviderKind(), LiteLLMKind())
