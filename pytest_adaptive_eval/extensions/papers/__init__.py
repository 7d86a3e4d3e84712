"""Experiments of the AutoJudger and M3-IRT papers on recorded responses: the verbs ``study``."""
