"""Model servers that a run starts and ends."""
