"""Claims on a bank that gates test by bets, and estimates of the claimed quantities."""
