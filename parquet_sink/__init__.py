"""Kafka topics arrive as Parquet files at a push API: at-least-once, on Spark."""

__version__ = "0.1.0"
