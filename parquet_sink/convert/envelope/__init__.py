"""Kafka Connect's JSON with a schema in each record."""
