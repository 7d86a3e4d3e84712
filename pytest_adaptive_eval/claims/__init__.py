"""What a gate can bet on, given a bank."""
