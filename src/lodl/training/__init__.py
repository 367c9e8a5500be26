"""Training on learned losses; each framework in a file of its own."""
