"""Transforms of the fields of keys or values: the exact form for one record, and columns where records are columns."""
