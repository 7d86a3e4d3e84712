"""The measurement engine: numbers in, numbers out; no files, clock, environment or pytest."""
