"""Make all golden files again: ``python tests/golden/make.py``, or only the named ones: ``... make.py streams``.

The golden files in ``stored/`` hold what a change of the code's inner shape must keep: records of earlier
versions, and random streams. They come from whole runs of ``pytest --adaptive-eval``
and of ``adaptive-eval``, and from the public names alone, so that they and their tests know no inner module.

They may be made again only in a change that means to alter what they hold, such as another default, a new setting or an
added name. That change says so in the changelog, and its diff of ``stored/`` shows no more than what it claims. A
change that claims to keep behaviour never makes them again: a difference there is a fault of the change. The records in
``stored/records`` stay as they are even where newer runs write more, since they stand for the files that users have.

Two runs of this command write the same bytes on one machine: to look for a difference in the last digits, run it and
ask ``git diff``. The tests compare numbers with a relative tolerance of 1e-7, and all else exactly, because other
processors round differently.

It needs the extras ``endpoint``, ``hf`` and ``pyro``, and POSIX signals.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import golden_records
import golden_streams
from golden_project import STORED, text_of

#: What makes the data of each stored file, in a folder of its own.
MADE: dict[str, Callable[[Path], dict[str, Any]]] = {
    "banks": lambda _: golden_records.make_bank(),
    "records": golden_records.make_records,
    "seeds": golden_streams.twenty_seeds,
    "ladders": golden_streams.ladders,
    "item-texts": golden_streams.item_texts,
    "studies": golden_streams.studies,
    "torch-calibrations": golden_streams.torch_calibrations,
}


def main(names: list[str]) -> None:
    """Make the files of those names, or all."""
    if unknown := set(names) - set(MADE):
        raise SystemExit(f"there are no golden files {', '.join(sorted(unknown))}; known are {', '.join(MADE)}")
    STORED.mkdir(exist_ok=True)
    for name in names or MADE:
        with tempfile.TemporaryDirectory() as folder:
            text = text_of(MADE[name](Path(folder)))
        (STORED / f"{name}.json").write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}.json: {len(text)} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
