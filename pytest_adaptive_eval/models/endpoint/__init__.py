"""Subjects that are models of an HTTP server."""
