"""Collection of a run: tests and TOML files as evaluations, gates with their plans, fixtures.

It may use all other rooms of the plugin but `activation`, which puts them together.
"""
