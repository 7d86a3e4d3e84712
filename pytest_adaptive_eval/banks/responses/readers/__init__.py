"""Readers of recorded responses, one format per module; each module registers its reader."""
