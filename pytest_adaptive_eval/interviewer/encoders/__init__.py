"""Encoders: models from local folders that give texts and pictures a place."""
