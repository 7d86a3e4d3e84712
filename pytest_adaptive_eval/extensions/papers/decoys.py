"""Contaminate a bank with decoys, deliberately broken items.

A decoy is an item whose image comes from another item, or whose text does, or whose image, text and key come from three
items. Key, choices and grader stay together, so a decoy is graded as strictly as any item. It can be answered only
by chance, or without the exchanged part. Its ``meta`` has ``"low_quality": "image"``, which shows whether a fit to
responses detects decoys.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import LOW_QUALITY, Item

#: Parts of an item that come from others.
SWAPS = ("all", "image", "text")
#: Number of random partners that are tried for a decoy.
DRAWS = 200


def contaminated(items: Sequence[Item], *, share: float = 0.5, seed: int = 0) -> list[Item]:
    """Return the items followed by decoys, a third of each kind if possible.

    Args:
        items: Items of a bank. Items with an image and a text give decoys, and decoys among them are dropped.
        share: Share of decoys in the result, above 0 and at most one half.

    Raises:
        BankError: Fewer than three items have an image and a text, or no exchange changes an item.
    """
    if not 0.0 < share <= 0.5:
        raise BankError(f"the share of low-quality items is {share!r}, expected a number above 0 and at most 0.5")
    originals = [item for item in items if LOW_QUALITY not in item.meta]
    whole = [item for item in originals if item.images and (item.prompt or item.messages)]
    if len(whole) < 3:
        raise BankError(
            f"{len(whole)} of {len(items)} items have an image and a text; it takes three to swap them, so add images "
            "to the items that need them"
        )
    rng = random.Random(f"contaminated {seed}")
    decoy_count = min(round(len(originals) * share / (1.0 - share)), len(whole)) or 1
    bad: list[Item] = []
    for item in rng.sample(whole, len(whole)):
        for turn in range(len(SWAPS)):  # the next kind in turn, or another without a partner
            spoilt = swapped(item, SWAPS[(len(bad) + turn) % len(SWAPS)], whole, rng)
            if spoilt is not None:
                bad.append(spoilt)
                break
        if len(bad) == decoy_count:
            break
    if not bad:
        raise BankError("no swap changes what is asked: the items have all the same image, or the same text and answer")
    return [*originals, *bad]


def swapped(item: Item, kind: str, items: Sequence[Item], rng: random.Random) -> Item | None:
    """Return a decoy with the key, choices and grader of an item and parts of others; None if no partner fits."""
    for _ in range(DRAWS):
        image, text = item, item
        if kind != "text":
            image = rng.choice(items)
        if kind != "image":
            text = rng.choice(items)
        if _spoilt(item, kind, image, text):
            break
    else:
        return None
    meta = {**item.meta, LOW_QUALITY: kind, "image_of": image.id, "text_of": text.id}
    return replace(
        item,
        id=f"{item.id}~{kind}",
        images=image.images,
        prompt=text.prompt,
        messages=text.messages,
        root=image.root,
        meta=MappingProxyType(meta),
    )


def _spoilt(item: Item, kind: str, image: Item, text: Item) -> bool:
    """Return whether an item of these parts differs from its sources, and its key is wrong."""
    images, words = image.image_paths, (text.prompt, text.messages)
    if kind != "text" and images == item.image_paths:
        return False
    if kind != "image" and words == (item.prompt, item.messages):
        return False
    # the parts may be those of one item, whose key must then differ
    for whole in (image, text):
        if images == whole.image_paths and words == (whole.prompt, whole.messages) and _key(whole) == _key(item):
            return False
    return kind != "all" or image.id != text.id


def _key(item: Item) -> str:
    """Return the answer, or the choice that its letter names."""
    answer = item.answer.strip()
    if len(answer) == 1:
        index = ord(answer.upper()) - 65
    else:
        index = -1
    if 0 <= index < len(item.choices):
        named = item.choices[index]
    else:
        named = answer
    return " ".join(named.split()).casefold()
