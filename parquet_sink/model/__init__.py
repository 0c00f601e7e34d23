"""Values that cross rooms and processes; imports nothing of the package."""
