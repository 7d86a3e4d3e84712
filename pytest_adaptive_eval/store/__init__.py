"""What outlives a process: the journal of answers, the records of runs."""
