"""Graders: how an answer is compared with the accepted ones.  Each kind is registered by its name."""
