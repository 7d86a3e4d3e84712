"""The questions of an interview: what is asked, when a model is called, and which answers are kept.

It may use what the rooms of the plugin share (`state`, `gates`, `notices`, `progress`, `names`), and neither `collect`
nor `report`.
"""
