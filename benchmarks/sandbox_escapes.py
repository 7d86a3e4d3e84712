"""The escape suite of ``tests/sandbox`` as a table: how many hostile programs are held.

``python benchmarks/sandbox_escapes.py`` runs it in the best tier as the user who starts it; ``--all`` in both tiers,
and, for root, also started by nobody and by a plain user (which needs an interpreter outside root's home; one is looked
for). ``--layers`` takes each layer away in turn and says what notices. Exits with 1 if something is not held that
should be.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "sandbox"))

from escape import other_interpreter, suite, suite_as
from hostile import NOT_HELD_BY_LOCKDOWN, PROGRAMS
from layers import without

from pytest_adaptive_eval.extensions.sandbox import Sandbox

USERS = {"nobody": 65534, "plain user": 12345}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="both tiers; as root, three users too")
    parser.add_argument("--layers", action="store_true", help="what notices that a layer is missing")
    options = parser.parse_args()
    tiers: tuple[Literal["auto", "full", "lockdown"], ...] = (
        ("full", "lockdown") if options.all or options.layers else ("auto",)
    )
    if options.layers:
        for tier in tiers:
            for layer, noticed in without(tier).items():
                print(f"{tier:9} without {layer:13} {'; '.join(noticed) or 'NOT NOTICED'}")
        return
    users: dict[str, int | None] = {"root" if os.getuid() == 0 else "this user": None}
    if options.all and os.getuid() == 0 and other_interpreter():
        users |= USERS
    failed = False
    for tier in tiers:
        for name, user in users.items():
            start = time.monotonic()
            out = suite(Sandbox.open(tier=tier)) if user is None else suite_as(user, tier)
            held = len(PROGRAMS) - len(out.keys() & PROGRAMS.keys())
            print(f"{tier:9} {name:11} held {held} of {len(PROGRAMS)}, {time.monotonic() - start:.0f} s  {out or ''}")
            failed = failed or bool(out.keys() - (NOT_HELD_BY_LOCKDOWN if tier == "lockdown" else set()))
    sys.exit(failed)


if __name__ == "__main__":
    main()
