"""The interviewer of an evaluation, from what the user wrote; models are loaded when they are first needed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.checks import check_keys
from pytest_adaptive_eval.config.kept import KeptTexts
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.embeddings import Embedder, best_embedder
from pytest_adaptive_eval.interviewer.interviewer import Candidate, Choice
from pytest_adaptive_eval.subjects import ENDPOINT, load_agent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pytest_adaptive_eval.interviewer.agent import AgentInterviewer
    from pytest_adaptive_eval.interviewer.memory import MemoryTable
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item

__all__ = ["INTERVIEW_KEYS", "interviewed"]

#: What ``interview`` of an evaluation may say, and the types it takes.
INTERVIEW_KEYS: Mapping[str, tuple[type, ...]] = {
    "interviewer": (str,),
    "mode": (str,),
    "options": (dict,),
    "sort_candidates": (bool,),
    "encoder": (str,),
    "part": (str,),
    "first": (str,),
    "count": (int,),
    "window": (list, tuple, bool),
    "retrieval": (str,),
    "candidates": (int,),
    "agent": (bool,),
    "visual": (bool,),
    "memory": (bool,),
    "difficulty": (str,),
}
#: Those that AutoJudger takes as they are.
_PASSED = ("first", "count", "retrieval", "candidates", "agent", "visual", "memory", "difficulty")
_MODES = ("rate", "reply")


def interviewed(
    data: Mapping[str, Any],
    bank: ItemBank,
    where: str,
    folders: Sequence[Path],
    *,
    cache: Path,
    decisions: Path,
    fresh: bool = False,
    seed: int = 0,
) -> tuple[AutoJudger, tuple[str, Mapping[str, Any]] | None, str]:
    """Return the selector ``autojudger``, the model that leads, and a sentence on who leads by what embeddings.

    The model is given by its spec and its options, None for the interviewer by code.

    Parameters
    ----------
    data : mapping
        Of `INTERVIEW_KEYS`.
    bank : ItemBank
    where : str
        For errors.
    folders : sequence of Path
        What relative paths may be relative to, in order.
    cache : Path
        Folder for embeddings and for hashes of checkpoints.
    decisions : Path
        File in which a model's decisions are kept, so that an interview that was cut off goes on as it began.
    fresh : bool
        Forget earlier decisions.
    seed : int
        Of the clusters.

    Raises
    ------
    ConfigError
        A setting is not known, out of its range, or names what is not there.
    """
    check_keys(data, INTERVIEW_KEYS, where, "interview.")
    encoder = _placed(str(data.get("encoder", "")), "encoder", where, folders)
    spec = _placed(str(data.get("interviewer", "")), "interviewer", where, folders)
    mode = data.get("mode")
    if mode is not None and mode not in _MODES:
        raise ConfigError(f"{where}: interview.mode is {mode!r}, expected {' or '.join(_MODES)}")
    if not spec and (model_keys := [name for name in ("mode", "options", "sort_candidates") if name in data]):
        raise ConfigError(
            f"{where}: interview.{model_keys[0]} goes with interview.interviewer, a model, and there is none"
        )
    passed = {name: data[name] for name in _PASSED if name in data}
    more: dict[str, Any] = {}
    if "window" in data:
        more["window"] = _window(data["window"], where)
    if spec:
        form = {"memory": data.get("memory", True), "difficulty": data.get("difficulty", "irt")}
        form |= {"images": data.get("visual", True), "sort_candidates": data.get("sort_candidates", False)}
        more["interviewer"] = _Agent(spec, mode, form, data.get("options", {}), cache, KeptTexts(decisions, fresh))
    embedder = _Embedder(encoder, data.get("part"), cache)
    try:
        selector = AutoJudger(embedder, seed=seed, **passed, **more)
    except ConfigError as error:
        raise ConfigError(f"{where}: interview: {error}") from None
    leader = f"interviewer {data['interviewer']}" if spec else "interviewer by code"
    if not selector.agent:
        leader = "drawn in the window, nobody picks"
    embeddings = f"embeddings by {data['encoder']}, as configured" if encoder else best_embedder(bank)[1]
    model = (spec, data.get("options", {})) if spec and selector.agent else None
    return selector, model, f"{leader}; {embeddings}"


def _placed(spec: str, name: str, where: str, folders: Sequence[Path]) -> str:
    """Return an existing path in its resolved form, and any other text unchanged."""
    path = Path(spec.removeprefix("local-dir:")).expanduser()
    existing = find_input(path, folders) if spec else None
    if existing is not None:
        return str(existing)
    if name == "interviewer" and spec and not spec.startswith(ENDPOINT):
        raise ConfigError(
            f"{where}: interview.interviewer is {spec!r}: expected an existing checkpoint folder or "
            "http://HOST:PORT/v1#MODEL; leave it out for the interviewer by code"
        )
    return spec


def _window(value: Any, where: str) -> tuple[float, float] | None:
    if value is False:
        return None
    if isinstance(value, bool) or len(value) != 2 or not all(isinstance(end, int | float) for end in value):
        raise ConfigError(f"{where}: interview.window is {value!r}, expected two chances such as [0.2, 0.8], or false")
    return float(value[0]), float(value[1])


class _Embedder:
    """The embedder that is best at hand, chosen when a bank is to be embedded."""

    def __init__(self, encoder: str, part: str | None, cache: Path) -> None:
        self._encoder, self._cache = encoder, cache
        self._options: dict[str, Any] = {} if part is None or not encoder else {"part": part}
        self._loaded: Embedder | None = None
        #: What went otherwise than planned.
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """Of what embedded; before, of what will."""
        return self._loaded.name if self._loaded is not None else self._encoder or "the best at hand"

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """See `Embedder`."""
        self._loaded, _ = best_embedder(
            bank, encoder=self._encoder, cache=self._cache, note=self.notes.append, **self._options
        )
        return self._loaded.embed(bank)


class _Agent:
    """A model as interviewer, loaded at its first task."""

    def __init__(
        self,
        spec: str,
        mode: str | None,
        form: Mapping[str, Any],
        options: Mapping[str, Any],
        cache: Path,
        decisions: KeptTexts,
    ) -> None:
        self._spec, self._mode, self._form, self._options = spec, mode, form, options
        self._cache, self._decisions = cache, decisions
        self._loaded: AgentInterviewer | None = None
        self._name = ""

    @property
    def name(self) -> str:
        """The model with a hash of it, and how it chooses."""
        if not self._name:
            with contextlib.suppress(AdaptiveEvalError):  # the first task reports why it cannot be loaded
                self._open()
        return self._name

    def categorise(self, items: Sequence[Item], known: Sequence[str]) -> list[tuple[str, ...]]:
        """See `Interviewer`."""
        return self._open().categorise(items, known)

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """See `Interviewer`."""
        return self._open().choose(candidates, memory, ability)

    def account(self) -> Mapping[str, Any]:
        """See `Interviewer`."""
        try:
            return self._open().account()
        except AdaptiveEvalError:  # the first task reports why it cannot be loaded; nothing was spent
            return {}

    def close(self) -> None:
        """Give back what the model holds."""
        if self._loaded is not None:
            self._loaded.close()
        self._loaded = None
        self._decisions.close()

    def _open(self) -> AgentInterviewer:
        if self._loaded is None:
            from pytest_adaptive_eval.interviewer.agent import AgentInterviewer

            more = {} if self._spec.startswith(ENDPOINT) else {"cache": self._cache}
            self._name = self._spec  # as the record has it when the model cannot be loaded
            agent = load_agent(self._spec, **more, **self._options)
            mode: Any = self._mode or ("rate" if agent.rates else "reply")
            self._loaded = AgentInterviewer(agent, mode=mode, decisions=self._decisions, **self._form)
            self._name = self._loaded.name
        return self._loaded
