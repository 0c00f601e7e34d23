"""JSON of a known schema to columns."""
