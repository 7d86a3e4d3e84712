"""The interviewer of an evaluation, from its settings; its models are loaded at their first use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.evaluation.tables import InterviewTable
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.embeddings import Embedder, best_embedder
from pytest_adaptive_eval.interviewer.first import responses_to
from pytest_adaptive_eval.interviewer.interviewer import UNKNOWN, Candidate, Choice, Difficulties
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import located
from pytest_adaptive_eval.types import Floats

if TYPE_CHECKING:
    from pytest_adaptive_eval.interviewer.agent import AgentInterviewer
    from pytest_adaptive_eval.interviewer.interviewer import MemoryTable
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses


def interviewed(
    table: InterviewTable,
    bank: ItemBank,
    folders: Sequence[Path],
    *,
    cache: Path,
    decisions: Path,
    profile: bool = False,
    fresh: bool = False,
    seed: int = 0,
) -> tuple[AutoJudger, tuple[str, Mapping[str, Any]] | None, str]:
    """Return the selector ``autojudger``, the interviewer's model and a sentence on interviewer and embeddings.

    The model is a spec and its options, None for the interviewer by code.

    Args:
        folders: Folders that relative paths are looked up in, in order.
        cache: Folder for embeddings and for hashes of checkpoints.
        decisions: File of the model's replies, by which an interrupted interview continues as it began.
        profile: Whether the policy estimates abilities by category, unless the table says it.

    Raises:
        ConfigError: A setting is out of its range, or names a file that does not exist.
    """
    local = Path(table.encoder.removeprefix("local-dir:")).expanduser()
    existing = None
    if table.encoder:
        existing = find_input(local, folders)
    if existing is None:
        encoder = table.encoder
    else:
        encoder = str(existing)
    spec = _interviewer_spec(table, folders)
    responses = None
    if table.responses:
        from pytest_adaptive_eval.banks.responses import read_responses

        source = f"interview.responses is {table.responses!r}"
        if (path := find_input(Path(table.responses).expanduser(), folders)) is None:
            raise ConfigError(f"{source}: expected an existing file of responses to the bank's items")
        responses = responses_to(bank, read_responses(path), source)
    interviewer = None
    if spec:
        interviewer = _InterviewingModel(table, spec, cache, partial(CompletionStore, decisions, fresh=fresh))
    with located("interview"):
        selector = AutoJudger(
            _Embedder(encoder, table.part, cache, responses),
            interviewer,
            first=table.first,
            count=table.count,
            responses=None if responses is None else responses.scores,
            window=table.window or None,
            retrieval=table.retrieval,
            candidates=table.candidates,
            agent=table.agent,
            visual=table.visual,
            memory=table.memory,
            difficulty=table.difficulty,
            profile=profile if table.profile is None else table.profile,
            seed=seed,
        )
    if spec:
        leader = f"interviewer {shown_address(table.interviewer)}"
    else:
        leader = "interviewer by code"
    if not selector.agent:
        leader = "drawn in the window, nobody picks"
    if encoder:
        embeddings = f"embeddings by {table.encoder}, as configured"
    else:
        embeddings = best_embedder(bank, responses=responses)[1]
    model = None
    if spec and selector.agent:
        model = (spec, table.options)
    return selector, model, f"{leader}; {embeddings}"


def _interviewer_spec(table: InterviewTable, folders: Sequence[Path]) -> str:
    """Return the spec of the interviewer's model, empty for the interviewer by code."""
    if table.interviewer:
        try:
            return resolve(table.interviewer, folders, chats=True)[1]
        except ConfigError:
            raise ConfigError(
                f"interview.interviewer is {shown_address(table.interviewer)!r}: expected an existing checkpoint "
                "folder or http://HOST:PORT/v1#MODEL; leave it out for the interviewer by code"
            ) from None
    model_keys = {"mode": table.mode, "options": table.options, "sort_candidates": table.sort_candidates}
    if written := [name for name, value in model_keys.items() if value]:
        raise ConfigError(f"interview.{written[0]} goes with interview.interviewer, a model, and there is none")
    return ""


class _Embedder:
    """The best available embedder, chosen when a bank is embedded."""

    def __init__(self, encoder: str, part: str | None, cache: Path, responses: Responses | None) -> None:
        self._encoder = encoder
        self._cache = cache
        self._responses = responses
        self._options: dict[str, Any] = {} if part is None or not encoder else {"part": part}
        self._loaded: Embedder | None = None
        self.notes: list[str] = []  #: Deviations from the settings.

    @property
    def name(self) -> str:
        if self._loaded is not None:
            return self._loaded.name
        return self._encoder or "the best at hand"

    @property
    def flops(self) -> float:
        return float(getattr(self._loaded, "flops", 0.0))

    def embed(self, bank: ItemBank) -> Floats:
        self._loaded, _ = best_embedder(
            bank,
            encoder=self._encoder,
            responses=self._responses,
            cache=self._cache,
            note=self.notes.append,
            **self._options,
        )
        return self._loaded.embed(bank)


class _InterviewingModel:
    """A model as interviewer, loaded at its first task.

    Args:
        open_store: Opens the file of its replies.
    """

    def __init__(
        self, table: InterviewTable, spec: str, cache: Path, open_store: Callable[[], CompletionStore]
    ) -> None:
        self._table = table
        self._spec = spec
        self._cache = cache
        self._open_store = open_store
        self._loaded: AgentInterviewer | None = None
        self._store: CompletionStore | None = None
        self._name = ""

    @property
    def name(self) -> str:
        """The model with its hash and mode."""
        if not self._name:
            with contextlib.suppress(AdaptiveEvalError):  # the first task reports why it cannot be loaded
                self._open()
        return self._name

    def categorise(
        self, items: Sequence[Item], existing: Sequence[str], difficulties: Difficulties = UNKNOWN
    ) -> list[tuple[str, ...]]:
        return self._open().categorise(items, existing, difficulties)

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        return self._open().choose(candidates, memory, ability)

    def account(self) -> Mapping[str, Any]:
        try:
            return self._open().account()
        except AdaptiveEvalError:  # the first task reports why it cannot be loaded; nothing was spent
            return {}

    def close(self) -> None:
        if self._loaded is not None:
            self._loaded.close()
        if self._store is not None:
            self._store.close()
        self._loaded = self._store = None

    def _open(self) -> AgentInterviewer:
        if self._loaded is None:
            from pytest_adaptive_eval.interviewer.agent import AgentInterviewer

            table = self._table
            self._name = self._spec  # in the record if the model cannot be loaded
            kind, spec = resolve(self._spec, chats=True)
            model = kind.load(spec, table.options, self._cache, chats=True)
            self._store = self._open_store()
            self._loaded = AgentInterviewer(
                RecordedModel(model, self._store),
                mode=table.mode or ("rate" if model.rates else "reply"),
                memory=table.memory,
                difficulty=table.difficulty,
                images=table.visual,
                sort_candidates=table.sort_candidates,
            )
            self._name = self._loaded.name
        return self._loaded
