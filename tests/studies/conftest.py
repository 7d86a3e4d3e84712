"""The fixtures of a small project to run pytest in."""

from laboratory import comparable, lab, project  # noqa: F401 - fixtures
