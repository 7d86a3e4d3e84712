"""The pytest side, in three rooms: `collect` what a run asks, `ask` its questions, `report` what came of it.

What the rooms share is beside them: the run's `state`, the `exchange` between its processes, the plans of `gates`,
`notices`, `progress` and `names`. `entry` is what pytest loads in every run, and `activation` what it loads where an
option asks for this plugin.
"""
