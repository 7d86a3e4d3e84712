"""Reports of a `RunRecord` for people and for other tools."""
