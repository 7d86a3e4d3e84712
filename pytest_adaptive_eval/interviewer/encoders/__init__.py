"""Encoders of texts and pictures, from local model folders."""
