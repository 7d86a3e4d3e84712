"""Banks of item-format pairs: items with image and text, with either alone, or with neither.

A pair is an item of a bank of its own. So draws, estimates and gates work on pairs as on items, and a budget counts
calls. A pair's category is its format. If the bank has parameters in formats (M2- or M3-IRT), pairs are items of a
multidimensional logistic model. Its dimensions are the ability components, in standard deviations of the calibration
subjects from their mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import Computed, ItemBank, scale_id
from pytest_adaptive_eval.items.item import Item

#: Stands for every format of an item.
ALL = "all"


def pair_id(item: Item, form: str) -> str:
    """Return the id of an item-format pair: the item's id in its default format, ``ITEM@FORMAT`` in others."""
    if form == item.formats[0]:
        return item.id
    return f"{item.id}@{form}"


def asked_in_formats(bank: ItemBank, formats: str | Sequence[str] = ALL) -> ItemBank:
    """Return the bank of the item-format pairs of a bank.

    Args:
        formats: Formats such as ``("image+text", "text")``; an item gives a pair for each of them that it has.

    Returns:
        It has K dimensions, one per ability component, if the bank has parameters in formats; otherwise it is
        uncalibrated. Its report has ``formats`` and ``parts``.

    Raises:
        ConfigError: There are fewer than two formats, no item has one of them, or an item has fewer than two.
    """
    pairs, order = _pairs(bank, formats)

    def pair(n: int) -> Item:
        index, form, name = pairs[n]
        return replace(bank.items[index].in_format(form), id=name, formats=(form,))

    items = Computed(len(pairs), pair)
    scale = bank.in_formats
    ids = [name for _, _, name in pairs]
    shared: dict[str, Any] = {
        "ids": ids,
        "categories": [form for _, form, _ in pairs],
        "content_hash": hashlib.sha256(f"{bank.content_hash} in {', '.join(order)}".encode()).hexdigest()[:16],
    }
    report = {**bank.report, "formats": order}
    if scale is None:
        return ItemBank.uncalibrated(bank.name, items, report=MappingProxyType(report), **shared)
    modalities = scale.items.modalities
    if missing := [form for form in order if form not in modalities.formats]:
        raise BankError(
            f"the bank {bank.name!r} was calibrated in the formats {', '.join(modalities.formats)}, and its items are "
            f"to be asked as {missing[0]!r} too: calibrate it with answers in that format, or leave it out of formats"
        )
    rows = np.array([index for index, _, _ in pairs])
    columns = np.array([modalities.formats.index(form) for _, form, _ in pairs])
    slopes, intercepts = scale.standard()
    slopes = slopes[rows, columns]
    intercepts = intercepts[rows, columns]
    # the last digits of these products differ by processor, and the id of the scale must not
    rounded = slopes.astype(np.float32), intercepts.astype(np.float32)
    return ItemBank(
        bank.name,
        items=items,
        discrimination=slopes,
        intercept=intercepts,
        model=scale.items.form,
        scale=scale_id(*rounded, np.zeros(len(ids))),
        subjects=bank.subjects,
        in_formats=scale,  # of the items, not of the pairs
        report=MappingProxyType({**report, "parts": list(modalities.parts)}),
        **shared,
    )


def _pairs(bank: ItemBank, formats: str | Sequence[str]) -> tuple[list[tuple[int, str, str]], list[str]]:
    """Return position, format and id of each item-format pair, and the formats in use."""
    if formats == ALL:
        chosen = None
    else:
        chosen = _checked_formats(formats)
    # texts are read once
    pair_ids = []
    for item in bank.items:
        pair_ids.append({form: pair_id(item, form) for form in item.formats})
    available = list(dict.fromkeys(form for ids in pair_ids for form in ids))
    if chosen is None:
        accepted = tuple(available)
    else:
        accepted = chosen
    for form in accepted:
        if form not in available:
            raise ConfigError(
                f"no item of the bank {bank.name!r} has the format {form!r}; they have {', '.join(available)}"
            )
    pairs = [
        (index, form, ids[form])
        for index, ids in enumerate(pair_ids)
        for form in _forms_of(f"item {bank.ids[index]!r} of the bank {bank.name!r}", ids, accepted)
    ]
    used = {form for _, form, _ in pairs}
    return pairs, [form for form in available if form in used]


def _forms_of(where: str, offered: Iterable[str], accepted: Sequence[str]) -> list[str]:
    """Return the formats of an item that are accepted; raise ConfigError for fewer than two."""
    forms = [form for form in offered if form in accepted]
    if len(forms) < 2:
        raise ConfigError(
            f"{where} has {len(forms)} of the formats {', '.join(accepted)}: "
            'asking in formats needs two or more; add "formats" to the item, such as ["image+text", "text"]'
        )
    return forms


def _checked_formats(formats: str | Sequence[str]) -> tuple[str, ...]:
    """Return a list of two or more different formats; raise ConfigError for anything else."""
    if isinstance(formats, str) or len(set(formats)) != len(formats) or len(formats) < 2:
        raise ConfigError(
            f'formats is {formats!r}, expected "all" or a list of two or more, such as ["image+text", "text"]'
        )
    return tuple(formats)
