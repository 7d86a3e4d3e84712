"""Report sections of the study kinds."""
