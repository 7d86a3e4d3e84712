"""Results of a run: records of interviews that have ended, verdicts of gates, and the protocol of a run.

It may use `ask` and what the rooms of the plugin share, and not `collect`.
"""
