"""Computerised adaptive testing: which item to administer next, and when to stop."""
