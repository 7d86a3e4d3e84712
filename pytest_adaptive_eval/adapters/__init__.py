"""Adapters by which other evaluation tools use the gates of this package."""
