"""Columns: infer, flatten, evolve, keys, metadata."""
