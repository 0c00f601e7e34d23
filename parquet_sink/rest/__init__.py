"""Kafka Connect's REST API over a `herder.protocol.Herder`, its server, and what guards it."""
