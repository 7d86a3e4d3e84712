"""The contaminated twin of a bank: beside its items, such as are no good on purpose.

Items with an image and a text are swapped apart, in three ways: the image taken
from another item, the text from another item, or image, text and key all from
different items.  Key, choices and grader always stay together, so that such an
item is graded as strictly as any; nobody can answer it but by chance, or without
what was swapped.  Each is marked in its ``meta``, ``"low_quality": "image"``, so that who
fits responses to the twin knows which items are no good, and can tell whether
they are found.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import EXPRESSION, MARKED, Item

__all__ = ["LOW_QUALITY", "SWAPS", "contaminated", "swapped"]

#: Where an item's ``meta`` tells how it was spoilt.
LOW_QUALITY = "low_quality"
#: What of an item is taken from others.
SWAPS = ("all", "image", "text")
#: Other items that are tried before one is said to have no partner.
DRAWS = 200


def contaminated(items: Sequence[Item], *, share: float = 0.5, seed: int = 0) -> list[Item]:
    """The items, and behind them low-quality ones, a third of each kind as far as they can be made.

    Parameters
    ----------
    items : sequence of Item
        Those with an image and a text are swapped; low-quality ones among them are left out.
    share : float
        Of low-quality items in the whole, above 0 and at most one half.
    seed : int
        Another one gives another twin.

    Raises
    ------
    BankError
        Fewer than three items have an image and a text, or no swap changes what is asked.
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
    wanted = min(round(len(originals) * share / (1.0 - share)), len(whole)) or 1
    bad: list[Item] = []
    for item in rng.sample(whole, len(whole)):
        for turn in range(len(SWAPS)):  # the next kind in turn, or another where no partner is found
            spoilt = swapped(item, SWAPS[(len(bad) + turn) % len(SWAPS)], whole, rng)
            if spoilt is not None:
                bad.append(spoilt)
                break
        if len(bad) == wanted:
            break
    if not bad:
        raise BankError("no swap changes what is asked: the items have all the same image, or the same text and answer")
    return [*originals, *bad]


def swapped(item: Item, kind: str, items: Sequence[Item], rng: random.Random) -> Item | None:
    """An item with parts of others, marked as of low quality; None where no partner is found.

    Parameters
    ----------
    item : Item
        Gives the key, with choices and grader.
    kind : {"all", "image", "text"}
    items : sequence of Item
        To take parts from.
    rng : random.Random
    """
    for _ in range(DRAWS):
        image = rng.choice(items) if kind != "text" else item
        text = rng.choice(items) if kind != "image" else item
        if _spoilt(item, kind, image, text):
            break
    else:
        return None
    gone = (EXPRESSION, MARKED)  # a twin with other values has no sense
    meta = {name: value for name, value in item.meta.items() if name not in gone}
    meta |= {LOW_QUALITY: kind, "image_of": image.id, "text_of": text.id}
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
    """Whether an item of these parts differs from each it was made of, and its key is not right by accident."""
    images, words = image.image_paths, (text.prompt, text.messages)
    if kind != "text" and images == item.image_paths:
        return False
    if kind != "image" and words == (item.prompt, item.messages):
        return False
    # the parts may be those of an item as it stands, whose key then must be another
    for whole in (image, text):
        if images == whole.image_paths and words == (whole.prompt, whole.messages) and _key(whole) == _key(item):
            return False
    return kind != "all" or image.id != text.id


def _key(item: Item) -> str:
    """The answer itself, where a letter names a choice."""
    answer = item.answer.strip()
    place = ord(answer.upper()) - 65 if len(answer) == 1 else -1
    named = item.choices[place] if 0 <= place < len(item.choices) else answer
    return " ".join(named.split()).casefold()
