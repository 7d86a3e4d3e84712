"""Options of a harness."""

from __future__ import annotations

from pytest_adaptive_eval.typed_tables import Count, FiniteSize, Table


class HarnessSettings(Table, frozen=True):
    """Options of a harness.

    Args:
        command: Command that runs the drawn items, split into words as a shell does, without a shell.
        checkpoint: Model that it runs, for ``{checkpoint}``: a folder, or a name. ``harness:NAME#CHECKPOINT`` wins.
        revision: Your own name for the version of a checkpoint that is not a folder.
        parallel: Number of items that a call runs at once.
        calls: Number of calls at once, over all evaluations and workers.
        item_timeout: Seconds for an item, 0 for no limit; a call may last as long as its items and one more in turn.
        call_timeout: Seconds for a call, 0 for no limit.
        grace: Seconds between the request to end a call and its end by force.
        env: Variables to add to the environment; ``$NAME`` takes the value of a variable.
        grade: Whether items' own graders grade the texts in the log, in place of its scores.
        metric: The log's metric that is the score, where there are several.
        filter: The log's answer filter, where there are several.
    """

    command: str = ""
    checkpoint: str = ""
    revision: str = ""
    parallel: Count = 1
    calls: Count = 1
    item_timeout: FiniteSize = 0.0
    call_timeout: FiniteSize = 0.0
    grace: FiniteSize = 30.0
    env: dict[str, str] = {}
    grade: bool = False
    metric: str | None = None
    filter: str | None = None
