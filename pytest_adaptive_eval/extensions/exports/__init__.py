"""Exports of records to other tools, and records kept by experiment trackers."""
