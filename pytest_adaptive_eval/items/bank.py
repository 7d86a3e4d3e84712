"""Banks of items, with lazily read texts and parameters as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.inference.conformal import Conformal
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.prediction import Predictor
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.types import Array, Ints

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import FormatScale


class Computed(Sequence[Any]):
    """Elements that a function makes on access, from their positions."""

    def __init__(self, size: int, make: Callable[[int], Any]) -> None:
        self._size, self._make = size, make

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        position = range(self._size)[index]
        if isinstance(index, slice):
            return [self._make(n) for n in position]
        return self._make(position)


class Mapped(Computed):
    """Elements of a lazily read sequence, each changed by a function that keeps their texts."""

    def __init__(self, whole: Sequence[Any], change: Callable[[Any], Any]) -> None:
        super().__init__(len(whole), lambda n: change(whole[n]))
        self._whole = whole

    def places_naming(self, names: Iterable[str]) -> Iterator[int]:
        """Yield the places of elements that may have a text; see `items.item.items_naming`."""
        find = getattr(self._whole, "places_naming", None)
        if find is None:
            return iter(range(len(self)))
        found: Iterator[int] = find(names)
        return found


class _Selection(Computed):
    """Selected elements of a lazily read sequence."""

    def __init__(self, whole: Sequence[Any], positions: Sequence[int]) -> None:
        super().__init__(len(positions), lambda n: whole[positions[n]])
        self._whole, self._positions = whole, positions

    def places_naming(self, names: Iterable[str]) -> Iterator[int]:
        """Yield the places of elements that may have a text; see `items.item.items_naming`."""
        find = getattr(self._whole, "places_naming", None)
        if find is None:
            return iter(range(len(self)))
        chosen = {position: n for n, position in enumerate(self._positions)}
        return (chosen[index] for index in find(names) if index in chosen)


def _frozen(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64, copy=True)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Steepest:
    """Items of a bank by falling slope, by which a selector skips flat ones.

    Args:
        order: Shape (n,). Positions in the bank.
        ceiling: Shape (n,). Upper limit of the item information, ``|A|^2 / 4`` rounded up, in rising order.
    """

    order: Ints
    ceiling: Array

    @classmethod
    def of(cls, bank: ItemBank) -> Steepest:
        """Return the items of a bank sorted."""
        order = np.argsort(-bank.squared_slope, kind="stable")
        return cls(order, bank.squared_slope[order[::-1]] * (0.25 * (1.0 + 1e-9)))


@dataclass(frozen=True, slots=True, eq=False)
class ItemBank:
    """`n` items on one scale of `D` dimensions, as a struct of read-only arrays.

    The probability of a right answer at ability ``theta`` (shape ``(D,)``, in
    logits, standard normal in the calibration population) is the three-parameter
    logistic in intercept form ::

        p_i(theta) = c_i + (1 - c_i) * expit(A_i . theta + d_i)

    so that in one dimension a = A and b = -d / a.

    Args:
        items: May be read lazily; ``items[i].id == ids[i]``.
        discrimination: Shape (n, D). A; negative if better subjects answer worse.
        intercept: Shape (n,).
        guess: Shape (n,). Lower asymptote c in [0, 1); zeros if omitted.
        calibrated: False for a bank without parameters: uniform draws only, no ability.
        model: ``1pl``, ``2pl``, ``3pl``, ``mirt`` or ``none``.
        scale: Id of the fit of the parameters; abilities on two scales are not comparable.
        content_hash: Hash over the items' texts, computed by the reader.
        categories: Broadest category of each item.
        subjects: Names of the subjects whose responses calibrated the bank.
        accuracies: Accuracy of each of them over the whole bank, in [0, 1], with predictions for missing scores; empty
            if unknown, as in a bank written from parameters.
        accuracy_ranges: Least and largest accuracy of each of them, whatever its missing scores; the accuracy itself,
            twice, if omitted.
        report: Calibration report; ``trusted`` is False for a bank written by force.
        conformal: Errors of replayed interviews by the policy's key, see `Policy.key`.
        in_formats: Parameters of the items with and without their image or text, see
            `items.modalities.asked_in_formats`.
        predictor: Predictor of unadministered scores, with the bank's form.

    Raises:
        BankError: Duplicate ids, a parameter that is not finite, a guess floor outside [0, 1), an accuracy outside [0,
            1], or unequal lengths.
    """

    name: str
    ids: Sequence[str]
    items: Sequence[Item]
    discrimination: Array
    intercept: Array
    guess: Array = field(default_factory=lambda: np.empty(0))
    calibrated: bool = True
    model: str = "2pl"
    scale: str = ""
    content_hash: str = ""
    categories: Sequence[str] = ()
    subjects: tuple[str, ...] = ()
    accuracies: tuple[float, ...] = ()
    accuracy_ranges: tuple[tuple[float, float], ...] = ()
    report: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    conformal: Mapping[str, Conformal] = field(default_factory=lambda: MappingProxyType({}))
    in_formats: FormatScale | None = None
    predictor: Predictor | None = None
    #: Lower asymptotes, or None if all are 0, which saves two passes over the bank.
    asymptote: Array | None = field(init=False, default=None)
    #: ``|A|^2``, shape (n,), for the item information at every step.
    squared_slope: Array = field(init=False, default_factory=lambda: np.empty(0))
    _steepest: Steepest | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        n = len(self.ids)
        slopes = np.asarray(self.discrimination, dtype=np.float64)
        object.__setattr__(self, "discrimination", _frozen(slopes[:, None] if slopes.ndim == 1 else slopes))
        object.__setattr__(self, "intercept", _frozen(self.intercept))
        object.__setattr__(self, "guess", _frozen(self.guess if len(self.guess) else np.zeros(n)))
        if self.accuracies and not self.accuracy_ranges:
            object.__setattr__(self, "accuracy_ranges", tuple((value, value) for value in self.accuracies))
        check_faults(self._faults(), f"bank {self.name!r}", BankError)
        object.__setattr__(self, "squared_slope", _frozen((self.discrimination**2).sum(axis=1)))
        object.__setattr__(self, "asymptote", self.guess if self.guess.any() else None)

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the bank, the first that matters first."""
        if not len(self.ids):
            yield "it has no items: a bank needs at least one"
        for name, expected in (("discrimination", "finite"), ("intercept", "finite"), ("guess", "in [0, 1)")):
            yield from self._faults_of_parameter(name, expected)
        ordered = np.sort(np.asarray(self.ids), kind="stable")  # the fastest where ids were given in order
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(same):
            twice = ordered[same[0]]
            if isinstance(twice, bytes):
                twice = twice.decode()
            else:
                twice = str(twice)
            yield f"duplicate item id {twice!r}; ids must be unique"
        yield from self._faults_of_accuracies()
        if self.predictor is not None and len(self.predictor.level) != len(self.ids):
            count = len(self.predictor.level)
            yield f"its predictor is of {count} items, and the bank has {len(self.ids)}. Calibrate the bank again"

    def _faults_of_parameter(self, name: str, expected: str) -> Iterator[str]:
        values = getattr(self, name)
        n = len(self.ids)
        if len(values) != n:
            yield f"{len(values)} values of {name} for {n} items; expected one per item"
        bad = ~np.isfinite(values).reshape(n, -1).all(axis=1)
        if name == "guess":
            bad |= (values < 0) | (values >= 1)
        if bad.any():
            first = int(bad.argmax())
            yield (
                f"item {self.ids[first]!r} has {name} {values[first].tolist()!r}, expected {expected}; "
                f"{int(bad.sum())} of {n} items are so. Calibrate the bank again or drop the item"
            )

    def _faults_of_accuracies(self) -> Iterator[str]:
        subjects = len(self.subjects)
        accuracies = len(self.accuracies)
        ranges = len(self.accuracy_ranges)
        if accuracies not in (0, subjects):
            yield f"expected {subjects} accuracies or none, got {accuracies}; calibrate the bank again"
        if ranges != accuracies:
            yield f"expected {accuracies} ranges of accuracies, got {ranges}; calibrate the bank again"
        for subject, accuracy, (low, high) in zip(self.subjects, self.accuracies, self.accuracy_ranges, strict=False):
            if not 0.0 <= low <= accuracy <= high <= 1.0:  # so is NaN
                yield (
                    f"the subject {subject!r} has accuracy {accuracy!r:.80} in [{low!r:.40}, {high!r:.40}], expected "
                    "numbers in [0, 1]. Calibrate the bank again"
                )

    def __len__(self) -> int:
        return len(self.ids)

    def probability(self, theta: Array, out: Array | None = None) -> Array:
        """Return the probability of a right answer to every item, shape (S, n), at abilities (S, D)."""
        return irt.probability(theta, self.discrimination, self.intercept, self.asymptote, out)

    @property
    def dimensions(self) -> int:
        """Number D of ability dimensions."""
        return int(self.discrimination.shape[1])

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the ability components, if the dimensions are such; see `items.modalities.asked_in_formats`."""
        return tuple(self.report.get("parts", ()))

    @property
    def steepest(self) -> Steepest:
        """Items by falling slope, sorted at the first access."""
        if self._steepest is None:
            object.__setattr__(self, "_steepest", Steepest.of(self))
        assert self._steepest is not None
        return self._steepest

    @property
    def leverage(self) -> Array:
        """Largest share of the information at the prior's mean that an item may have, ``A' I^-1 A``, shape (n,)."""
        A = self.discrimination
        weight = irt.weight(irt.probability(np.zeros((1, self.dimensions)), A, self.intercept)[0])
        information = (A * weight[:, None]).T @ A + np.eye(self.dimensions)
        return np.asarray((A @ np.linalg.inv(information) * A).sum(axis=1))

    @property
    def difficulty(self) -> Array:
        """Difficulty b = -d / a, shape (n,), in logits; -d / |A| for D > 1, NaN for items without discrimination."""
        return self.difficulty_of(slice(None))

    def difficulty_of(self, items: Any) -> Array:
        """Return the difficulty of the items at an index or slice; see `difficulty`."""
        if self.dimensions == 1:
            norm = self.discrimination[items, 0]
        else:
            norm = np.sqrt(self.squared_slope[items])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(norm != 0, -self.intercept[items] / norm, np.nan)

    @property
    def shown_ids(self) -> str:
        """The ids in words, of many the first and the last ones."""
        ids = list(map(str, self.ids))
        return ", ".join(ids if len(ids) < 7 else [*ids[:3], "...", *ids[-2:]])

    def index(self, item_id: str) -> int:
        """Return the position of an item id; raise BankError if no item has that id."""
        try:
            return list(self.ids).index(item_id)
        except ValueError:
            raise BankError(f"bank {self.name!r} has no item {item_id!r}; its ids are {self.shown_ids}") from None

    def only(self, category: str) -> ItemBank:
        """Return the items of one of the broadest categories as a bank; raise ConfigError if there are none."""
        positions = []
        for n, broadest in enumerate(self.categories):
            if broadest == category:
                positions.append(n)
        if not positions:
            available = ", ".join(dict.fromkeys(filter(None, self.categories))) or "none"
            raise ConfigError(f"bank {self.name!r} has no category {category!r}; it has {available}")
        part = self.subset(positions, category)
        return replace(part, report=MappingProxyType({**self.report, "category": category}))

    def subset(self, positions: Sequence[int], name: str) -> ItemBank:
        """Return the items at some positions as a bank on the same scale; `name` is for its content hash."""
        return replace(
            self,
            ids=[self.ids[n] for n in positions],
            items=_Selection(self.items, positions),
            discrimination=self.discrimination[positions],
            intercept=self.intercept[positions],
            guess=self.guess[positions],
            categories=[self.categories[n] for n in positions] if len(self.categories) else (),
            content_hash=hashlib.sha256(f"{self.content_hash} {name}".encode()).hexdigest()[:16],
            accuracies=(),
            accuracy_ranges=(),
            conformal=MappingProxyType({}),
            in_formats=None if self.in_formats is None else self.in_formats.subset(positions),
            predictor=None,  # its form and designs are for the whole bank
        )

    @classmethod
    def uncalibrated(cls, name: str, items: Sequence[Item], **more: Any) -> ItemBank:
        """Return a bank of items without parameters, which are treated alike."""
        n = len(items)
        ids = more.pop("ids", None) or [item.id for item in items]
        return cls(name, ids, items, np.zeros((n, 1)), np.zeros(n), calibrated=False, model="none", scale="", **more)


def scale_id(discrimination: ArrayLike, intercept: ArrayLike, guess: ArrayLike) -> str:
    """Return the id of a fit: the first 16 hex digits of SHA-256 over its parameters."""
    digest = hashlib.sha256()
    for array in (discrimination, intercept, guess):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()[:16]
