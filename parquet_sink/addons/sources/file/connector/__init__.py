"""Kafka Connect's FileStreamSource as a connector class."""
