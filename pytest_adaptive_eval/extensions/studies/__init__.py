"""Evaluations that are no interview of one subject: networks, and panels that judge each other."""
