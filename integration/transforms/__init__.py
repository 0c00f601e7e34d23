"""Transforms, compared with Kafka Connect's own: the same records and configurations go to both."""
