"""Kafka Connect's file connectors: FileStreamSink, topics to a file or to standard output."""
