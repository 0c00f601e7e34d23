"""What the simulation predicts against what the sink does: five loads."""
