"""Subjects that are checkpoint folders on this machine."""
