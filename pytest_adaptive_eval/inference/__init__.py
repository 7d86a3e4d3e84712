"""Statistics of draws: designs, intervals, bets, ranks, conformal intervals and decoding noise."""
