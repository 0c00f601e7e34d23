"""Which thresholds give what an operator asks for: loads, their simulation, and the choice among settings."""
