"""Fixtures of an active run; a conftest may override `model`."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval import evaluation as assembly
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.checkpoint.folder import checkpoint_hash
from pytest_adaptive_eval.plugin.gates import Results, judges_itself
from pytest_adaptive_eval.plugin.report.verdicts import VERDICTS
from pytest_adaptive_eval.plugin.state import STATE, UnrepeatableTest

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.state import EvaluationTest

#: Subjects that `check_models` loaded, until an interview takes them.
_CHECKED: pytest.StashKey[dict[tuple[str, Path, str], Any]] = pytest.StashKey()

NO_MODEL = (
    "no model: name one with --adaptive-eval-model, in the ini setting adaptive_eval_model, in the TOML file "
    "(model = ...), or define a fixture `model` in conftest.py"
)


def subject(config: pytest.Config, spec: str, base: Path, options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the subject that `spec` names, and close it at the end: the body of a model fixture."""
    loaded = config.stash.setdefault(_CHECKED, {}).pop(_key(spec, base, options), None)
    if loaded is None:
        loaded = config.hook.pytest_adaptive_eval_subject(spec=spec, config=config)
    if loaded is None:
        folder = config.stash[STATE].folder
        loaded = assembly.load_model(spec, (config.invocation_params.dir, base), folder / "cache", options)
    yield loaded
    getattr(loaded, "close", lambda: None)()


_Named = tuple[str, Path, Mapping[str, Any], Callable[[], contextlib.AbstractContextManager[None]]]


def _key(spec: str, base: Path, options: Mapping[str, Any]) -> tuple[str, Path, str]:
    return spec, base, repr(sorted(options.items()))


def check_models(config: pytest.Config, evaluations: Sequence[EvaluationTest]) -> None:
    """Check each model that a setting or a TOML file names, before the first question.

    Those are the subjects of interviews, their interviewers and judges, and the members of other evaluations. `subject`
    yields a subject that was loaded here. The user's own fixture `model` cannot be checked before it runs.

    Raises:
        ConfigError, CheckpointError: A model cannot be used.
    """
    checked = config.stash.setdefault(_CHECKED, {})
    cache = config.stash[STATE].folder / "cache"
    for spec, base, options, located in _named_subjects(config, evaluations):
        loaded = config.hook.pytest_adaptive_eval_subject(spec=spec, config=config)
        if loaded is None:
            with located():
                loaded = assembly.check_model(spec, (config.invocation_params.dir, base), cache, options)
        if loaded is not None:
            checked[_key(spec, base, options)] = loaded
            config.add_cleanup(getattr(loaded, "close", lambda: None))
    checked_keys = {(spec, options, False) for spec, _, options in checked}
    others = itertools.chain.from_iterable(node.evaluation.other_models() for node in evaluations)
    for spec, options, chats in others:
        if (key := (spec, repr(sorted(options.items())), chats)) not in checked_keys:
            checked_keys.add(key)
            other = assembly.check_model(spec, (), cache, options, chats=chats)
            if other is not None:
                other.close()


def checkpoint_of(config: pytest.Config, interview: EvaluationTest) -> str:
    """Return the hash of the files of the model that a setting or a TOML file names; empty where that is not known."""
    for spec, base, options, _ in _named_subjects(config, [interview]):
        with contextlib.suppress(ConfigError, CheckpointError):  # a mistake that `check_models` reports
            kind, located = resolve(spec, (config.invocation_params.dir, base))
            if Path(located).is_dir():
                return checkpoint_hash(located, cache=config.stash[STATE].folder / "cache")
            if kind.answers_ids and not kind.hashes_files:  # recorded answers
                return kind.load(located, options).identity.checkpoint
    return ""


def _named_subjects(config: pytest.Config, evaluations: Iterable[EvaluationTest]) -> Collection[_Named]:
    """Return spec, base folder and options of each subject that a setting or a TOML file names, and its place."""
    settings = config.stash[STATE].settings
    subjects: dict[tuple[str, Path, str], _Named] = {}
    for interview in (node for node in evaluations if node.evaluation.most_questions):
        if (named_model := interview.own_model) is not None:
            subjects[_key(named_model.spec, named_model.base, named_model.options)] = (
                named_model.spec,
                named_model.base,
                named_model.options,
                named_model.located,
            )
            continue
        definitions = interview._fixtureinfo.name2fixturedefs.get("model", ())[-1:]
        if settings.model is not None and any(definition.func is model_function for definition in definitions):
            named = settings.model, config.rootpath, settings.model_options
            subjects[_key(*named)] = *named, contextlib.nullcontext
    return subjects.values()


def model_function(pytestconfig: pytest.Config) -> Iterator[Any]:
    """The subject named by --adaptive-eval-model or the ini setting adaptive_eval_model."""
    settings = pytestconfig.stash[STATE].settings
    if settings.model is None:
        raise ConfigError(NO_MODEL)
    yield from subject(pytestconfig, settings.model, pytestconfig.rootpath, settings.model_options)


model = pytest.fixture(scope="session", name="model")(model_function)


def may_read_flags(definitions: Sequence[Any], fixture_info: Any) -> bool:
    """Return whether a fixture can read flags: its last definition, which overrides earlier ones."""
    pending = [definitions[-1]]
    visited: set[str] = set()
    while pending:
        definition = pending.pop()
        if definition.func is model_function or {"request", "pytestconfig"} & set(definition.argnames):
            return True
        for name in set(definition.argnames) - visited:
            visited.add(name)
            overrides = fixture_info.name2fixturedefs.get(name, ())
            pending += overrides[:-1][-1:] if definition in overrides else overrides[-1:]
    return False


@pytest.fixture
def item(request: pytest.FixtureRequest) -> object:
    """The question of a test with the mark ``adaptive_eval``, which parametrizes it."""
    pytest.fail(
        f"{request.node.nodeid}: the test takes the argument item and has no mark that says which questions it asks: "
        'write @pytest.mark.adaptive_eval(bank="questions.jsonl") above it',
        pytrace=False,
    )


@pytest.fixture
def adaptive_eval(request: pytest.FixtureRequest) -> Results:
    """Results of the interviews of this run, by the name of the evaluation, its bank, or a node id."""
    state = request.config.stash[STATE]
    node = request.node
    state.places.check(node.nodeid)
    if isinstance(node, UnrepeatableTest):
        raise judges_itself(node)
    if node not in state.needs:
        raise ConfigError(
            f"{node.nodeid}: the test gets the fixture adaptive_eval by its name while it runs, which may be before "
            'its interviews: take it as an argument, or put @pytest.mark.usefixtures("adaptive_eval") on the test'
        )
    return request.config.stash[VERDICTS].results(node)
