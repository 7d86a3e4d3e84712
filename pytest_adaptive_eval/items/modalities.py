"""Banks whose items are asked in formats: with image and text, with either alone, with neither.

An item in a format is an item of a bank of its own, a *pair*, so that all that
draws, estimates and judges on a bank does so on pairs as well, and a budget
counts calls.  A pair's category is its format.  Where the bank has parameters in
formats (M2- or M3-IRT), pairs are items of a multidimensional logistic model
whose dimensions are the parts of ability, in standard deviations of the
calibration subjects from their middle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank, scale_id
from pytest_adaptive_eval.items.item import Item

__all__ = ["ALL", "asked_in_formats", "pair_id"]

Array = NDArray[np.float64]

#: Says that items are asked in every format that they have.
ALL = "all"


def pair_id(item: Item, form: str) -> str:
    """The id of an item in a format: the item's own in its default format, ``ITEM@FORMAT`` in the others."""
    return item.id if form == item.formats[0] else f"{item.id}@{form}"


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs(Sequence[Item]):
    """Items in formats, made when they are asked for."""

    items: Sequence[Item]
    places: Sequence[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        place, form = self.places[index]
        item = self.items[place]
        return replace(item.in_format(form), id=pair_id(item, form), formats=(form,))


def asked_in_formats(bank: ItemBank, formats: str | Sequence[str] = ALL) -> ItemBank:
    """The bank of a bank's items in formats.

    Parameters
    ----------
    bank : ItemBank
    formats : "all" or sequence of str
        Such as ``("image+text", "text")``; an item is asked in those that it has.

    Returns
    -------
    ItemBank
        Of K dimensions, one a part of ability, where the bank has parameters in formats; else uncalibrated.  Its
        report names ``formats`` and ``parts``.

    Raises
    ------
    ConfigError
        A format that no item has, an item that has fewer than two of the formats, or fewer than two formats.
    """
    wanted = None if formats == ALL else tuple(formats)
    if wanted is not None and (isinstance(formats, str) or len(set(wanted)) != len(wanted) or len(wanted) < 2):
        raise ConfigError(
            f'formats is {formats!r}, expected "all" or a list of two or more, such as ["image+text", "text"]'
        )
    have = [{form: pair_id(item, form) for form in item.formats} for item in bank.items]  # read once: texts are lazy
    known = list(dict.fromkeys(form for own in have for form in own))
    if wanted is not None and (unknown := [form for form in wanted if form not in known]):
        raise ConfigError(
            f"no item of the bank {bank.name!r} has the format {unknown[0]!r}; they have {', '.join(known)}"
        )
    places: list[tuple[int, str]] = []
    ids: list[str] = []
    for place, names in enumerate(have):
        own = [form for form in names if wanted is None or form in wanted]
        if len(own) < 2:
            raise ConfigError(
                f"item {bank.ids[place]!r} of the bank {bank.name!r} has {len(own)} of the formats "
                f"{', '.join(wanted or known)}: "
                'asking in formats needs two or more; add "formats" to the item, such as ["image+text", "text"]'
            )
        places += [(place, form) for form in own]
        ids += [names[form] for form in own]
    order = [form for form in known if any(form == own for _, own in places)]
    shared: dict[str, Any] = {
        "ids": ids,
        "categories": [form for _, form in places],
        "content_hash": hashlib.sha256(f"{bank.content_hash} in {', '.join(order)}".encode()).hexdigest()[:16],
    }
    items, scale = _Pairs(bank.items, places), bank.in_formats
    report = {**bank.report, "formats": order}
    if scale is None:
        return ItemBank.uncalibrated(bank.name, items, report=MappingProxyType(report), **shared)
    modalities = scale.items.modalities
    if missing := [form for form in order if form not in modalities.formats]:
        raise BankError(
            f"the bank {bank.name!r} was calibrated in the formats {', '.join(modalities.formats)}, and its items are "
            f"to be asked as {missing[0]!r} too: calibrate it with answers in that format, or leave it out of formats"
        )
    rows = np.array([place for place, _ in places])
    columns = np.array([modalities.formats.index(form) for _, form in places])
    slopes, intercepts = scale.standard()
    slopes, intercepts = slopes[rows, columns], intercepts[rows, columns]
    return ItemBank(
        bank.name,
        items=items,
        discrimination=slopes,
        intercept=intercepts,
        model=scale.items.form,
        scale=scale_id(slopes, intercepts, np.zeros(len(ids))),
        subjects=bank.subjects,
        in_formats=scale,  # of the items, not of the pairs
        report=MappingProxyType({**report, "parts": list(modalities.parts)}),
        **shared,
    )
