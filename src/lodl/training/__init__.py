"""Training on learned losses: one module per framework."""
