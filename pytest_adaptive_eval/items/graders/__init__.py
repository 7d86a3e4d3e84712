"""Graders, which compare answers with accepted ones.  Each kind is registered by its name."""
