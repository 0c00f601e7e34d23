"""Avro in bytes to columns."""
