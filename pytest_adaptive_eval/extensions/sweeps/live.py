"""Progress of a sweep: a table that is redrawn on a terminal, and one line per cell in a log."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cli.screen import put, say
from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd
from pytest_adaptive_eval.extensions.sweeps.matrix import GLYPHS, Matrix, state_of
from pytest_adaptive_eval.text import clean_terminal

#: Seconds between two drawings, and most rows and columns of names.
_EVERY, _ROWS, _NAME = 0.5, 24, 32


def cell_line(cell: Cell, end: CellEnd) -> str:
    """Return the log line of a cell that ended."""
    state = state_of(end)
    sentence = end.reason or "; ".join(str(gate.get("sentence")) for gate in end.gates) or "no gate"
    asked = sum(int(interview.get("asked") or 0) for interview in end.interviews)
    return clean_terminal(f"{cell.name}: {state} in {end.seconds:.1f} s, {asked} questions: {sentence}", 300)


class LiveTable:
    """The table of a sweep on a terminal, lines in a log.

    Args:
        ends: Grows while the sweep runs.
    """

    def __init__(self, cells: Sequence[Cell], ends: Mapping[str, CellEnd]) -> None:
        self._cells = {cell.key: cell for cell in cells}
        self._ends = ends
        self._terminal = sys.stdout.isatty()
        self._drawn, self._lines, self._begun = 0.0, 0, clock.elapsed()

    def ended(self, end: CellEnd) -> None:
        """Report a cell that ended."""
        if not self._terminal or not end.finished:
            self._say(f"[{len(self._ends)}/{len(self._cells)}] {cell_line(self._cells[end.key], end)}")

    def again(self, end: CellEnd, retry: int) -> None:
        """Report a cell that runs again."""
        self._say(f"{self._cells[end.key].name}: {clean_terminal(end.reason, 200)}; run again, number {retry}")

    def tick(self, running: Sequence[str]) -> None:
        """Draw the table, on a terminal only."""
        if self._terminal and clock.elapsed() - self._drawn >= _EVERY:
            self._drawn = clock.elapsed()
            self.clear()
            lines = self.lines(running, *shutil.get_terminal_size())
            put("".join(f"{line}\n" for line in lines))
            self._lines = len(lines)

    def clear(self) -> None:
        """Remove the table from the terminal."""
        if self._lines:
            put(f"\x1b[{self._lines}A\x1b[J")
            self._lines = 0

    def _say(self, line: str) -> None:
        self.clear()
        say([line])

    def lines(self, running: Sequence[str], columns: int, rows: int) -> list[str]:
        """Return the table for a terminal of that size: newest rows that fit, then counts and the running cells."""
        matrix = Matrix(list(self._cells.values()), self._ends)
        active = set(running)
        width = min(max((len(c.name) for c in matrix.checkpoints), default=0), _NAME)
        fitting = max(1, (columns - width - 2) // 2)
        body = []
        for checkpoint in matrix.checkpoints:
            glyphs = []
            for evaluation in matrix.evaluations[:fitting]:
                entry = matrix.entry(checkpoint, evaluation)
                busy = any(cell.key in active for cell, _ in entry.cells)
                glyphs.append("»" if busy else GLYPHS[entry.state])
            body.append(
                f"{clean_terminal(checkpoint.name, width, keep_end=True):{width}}  {' '.join(glyphs)}"[:columns]
            )
        most = min(_ROWS, max(1, rows - 4))
        busy_rows = [n for n, line in enumerate(body) if "»" in line]
        first = max(0, min((busy_rows or [0])[0] - 1, len(body) - most))
        counts = ", ".join(f"{count} {state}" for state, count in sorted(matrix.states.items()) if state != "waiting")
        now = f"{len(self._ends)} of {len(self._cells)} cells ended ({counts or 'none yet'}), {len(active)} run"
        names = ", ".join(self._cells[key].name for key in list(running)[:3] if key in self._cells)
        passed = f"{clock.elapsed() - self._begun:.0f} s"
        return [
            *body[first : first + most],
            clean_terminal(f"{now}, {passed}", columns),
            *([clean_terminal(f"now: {names}", columns)] if names else []),
        ]
