"""Import of published data sets: their records as items of a bank."""
