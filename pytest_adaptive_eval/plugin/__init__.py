"""The pytest side: hooks, items, fixtures and TOML files."""
