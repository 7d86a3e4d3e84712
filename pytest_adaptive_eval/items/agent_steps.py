"""Steps of an agent, as its log has them; this module loads without numpy."""

from __future__ import annotations

from typing import NamedTuple


class AgentStep(NamedTuple):
    """One message of an agent's work on an item, by who wrote it: ``assistant``, ``tool`` and so on."""

    role: str
    text: str
