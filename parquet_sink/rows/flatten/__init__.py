"""Records to payload columns: flattened, or nested."""
