"""Built-in kinds of subjects, one per module; each module has a tuple ``REGISTERED``."""
