"""Evaluations of several models: networks, and panels that judge each other."""
