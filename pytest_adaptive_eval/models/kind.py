"""Kinds of models: how a text names a model, and how it is loaded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.models.base import Model

#: Likeness of a beginning of a text to that of a kind, from which it may be a slip.
_SIMILAR = 0.7


class ModelKind:
    """A kind of model.

    A subclass sets the attributes, and a module registers an instance in its tuple ``REGISTERED``. Such a module is
    imported for ``--help``, so it imports nothing heavy: `model` names a class of another module, or of this one.

    Attributes:
        form: Text that names a model of this kind, such as ``replay:FILE[#NAME]``.
        help: Noun phrase for the help of ``--adaptive-eval-model``.
        prefixes: Beginnings of such texts. A kind without prefixes overrides `locate`.
        model: Class of the models, ``package.module:Class``. Its class method ``load`` takes `arguments` by position
            and the options by name.
        chats: Whether the models hold chats, as interviewers, judges and members of networks and panels do.
        extra: Extra of this distribution that the classes need; empty for none.
        remote: Whether models of this kind use no memory of this machine.
        hashes_files: Whether ``load`` takes the option ``cache``, a folder for hashes of files.
        answers_ids: Whether the models answer items by their id alone.
    """

    name = ""
    form = ""
    help = ""
    prefixes: tuple[str, ...] = ()
    model = ""
    options: tuple[str, ...] = ()
    chats = True
    extra = ""
    remote = False
    hashes_files = False
    answers_ids = False

    def locate(self, spec: str, folders: Sequence[Path]) -> str | None:  # noqa: ARG002 -- for kinds with files
        """Return `spec` with its path located, in the first of `folders` that has it; None for another kind."""
        if spec.startswith(self.prefixes):
            return spec
        return None

    def suggestion(self, spec: str) -> str:
        """Return the begin of a sentence on how a text of no kind may be meant, up to a semicolon; empty if unknown."""
        name, colon, rest = spec.partition(":")
        if rest:
            close = difflib.get_close_matches(name + colon, self.prefixes, 1, _SIMILAR)
        else:
            close = []
        if close:
            return f"did you mean {close[0] + rest!r}? Or "
        return ""

    def arguments(self, spec: str) -> tuple[Any, ...]:
        """Return the positional arguments of ``load``."""
        return (spec,)

    def label(self, spec: str) -> str:
        """Return `spec` for messages, without secrets."""
        return spec

    def model_name(self, spec: str) -> str:
        """Return the name of a model where nothing else names it; raise ConfigError if `spec` names no model."""
        return self.label(spec)

    def load(self, spec: str, options: Mapping[str, Any], cache: Path | None = None, *, chats: bool = False) -> Model:
        """Load a model.

        Args:
            cache: Folder for hashes of files, for kinds that hash files.
            chats: Whether the model is to hold chats.

        Raises:
            ConfigError: An option is unknown, a package is missing, or the model cannot be used.
            CheckpointError: A checkpoint folder is unsafe, incomplete or does not load in full.
        """
        module, _, loader = self.model.partition(":")
        self.check_names(spec, options)
        if cache is not None and self.hashes_files:
            options = {"cache": cache, **options}
        try:
            load = getattr(import_module(module), loader).load
            loaded: Model = load(*self.arguments(spec), **options)
        except ImportError as error:
            raise self.missing_package(spec, error) from error
        try:
            if chats:
                loaded.prepare_chats()
        except BaseException:
            loaded.close()
            raise
        return loaded

    def examine(
        self, spec: str, options: Mapping[str, Any], cache: Path | None = None, *, chats: bool = False
    ) -> Model | None:
        """Check a model before the first question like `load`; return None if loading it everywhere takes too much."""
        return self.load(spec, options, cache, chats=chats)

    def check_items(self, spec: str, items: Sequence[Item]) -> None:
        """Raise ConfigError for an item that the model cannot be asked, before the run."""

    def command(self, spec: str, options: Mapping[str, Any], item: str) -> str:  # noqa: ARG002 -- of those that run one
        """Return the command that asking an item by its id runs; empty for models that run none."""
        return ""

    def check_names(self, spec: str, options: Iterable[str]) -> None:
        """Raise ConfigError if an option is unknown."""
        if unknown := sorted(set(options) - set(self.options)):
            raise ConfigError(
                f"model {self.label(spec)!r} has no option {', '.join(unknown)}; "
                f"expected {', '.join(self.options) or 'no options'}"
            )

    def missing_package(self, spec: str, error: ImportError) -> ConfigError:
        """Return the error for a package that is not installed."""
        if self.extra:
            fix = f'pip install "pytest-adaptive-eval[{self.extra}]"'
        else:
            fix = "install it"
        return ConfigError(f"{self.label(spec)!r}: {self.help} needs a package ({error}); {fix}")
