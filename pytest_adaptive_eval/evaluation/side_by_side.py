"""Evaluations of several models or prompts side by side: one interview each, with the same draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import PurePath
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.toml import TomlEval
from pytest_adaptive_eval.items.presentation import is_template

#: Suffixes of files of recorded answers and of prompts.
_SUFFIXES = (".csv", ".jsonl", ".md", ".txt")
_WORDS = 4  #: Words of a template that name its interview.


def variants(evaluation: TomlEval, models: Sequence[str]) -> Iterator[TomlEval]:
    """Yield an interview for each model and prompt of an evaluation, or the evaluation itself without several.

    Args:
        models: Models of the command line, in place of the evaluation's own.

    Raises:
        ConfigError: A model and models, or a template and templates, are given.
    """
    spec = evaluation.spec
    if not spec.asks_items:
        yield evaluation
        return
    named: Sequence[str] | Mapping[str, str] = models or spec.table.models
    templates = spec.table.templates
    if not named and not templates:
        yield evaluation
        return
    with spec.located():
        for key, several in (("model", named if not models else ()), ("template", templates)):
            if several and key in spec.data:
                raise ConfigError(f"{key} and {key}s exclude each other: write all of them into {key}s")
    rest = {}
    for key, value in spec.data.items():
        if key not in ("models", "templates"):
            rest[key] = value
    chosen_pairs = product(_labelled(named), _labelled(templates))
    for number, ((model, of_model), (template, of_template)) in enumerate(chosen_pairs, 1):
        label = "-".join(filter(None, [of_model, of_template]))
        chosen = {}
        for name, value in (("model", model), ("template", template)):
            if value is not None:
                chosen[name] = value
        data: dict[str, Any] = {**rest, **chosen, "name": f"{spec.name}-{label}"}
        # names that a person gives stay while checkpoints change, and those of files do not
        series = f"{spec.name}-{label if isinstance(named, Mapping) else number}"
        yield replace(evaluation, spec=replace(spec, data=data, group=spec.name, variant=label, series=series))


def _labelled(texts: Sequence[str] | Mapping[str, str]) -> list[tuple[str | None, str]]:
    """Return models or templates with names, or with labels that differ; one without a label for no models."""
    if isinstance(texts, Mapping):
        return [(text, name) for name, text in texts.items()]
    if not texts:
        return [(None, "")]
    labels: list[str] = []
    for number, text in enumerate(texts, 1):
        if is_template(text):
            label = _first_words(text) or str(number)
        else:
            label = _short(text)
        labels.append(label if label not in labels else f"{label}-{number}")
    return list(zip(texts, labels, strict=True))


def _first_words(template: str) -> str:
    """Return the first words of a template that are not the question's own, joined; empty if it has none."""
    return "_".join(re.findall(r"[^\W_]+", re.sub(r"\{[^}]*\}", " ", template))[:_WORDS])


def _short(text: str) -> str:
    """Return the last part of a model's name or of a path, without what cannot name a test."""
    path = PurePath(re.split(r"[#:](?=[^/#:]+\Z)", text)[-1])
    last = path.stem if path.suffix in _SUFFIXES else path.name
    return re.sub(r"[\[\]\s]+", "_", last) or "model"
