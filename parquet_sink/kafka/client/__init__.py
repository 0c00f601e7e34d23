"""Kafka clients: options in Java's names, what errors mean, what clients log, calls with a time limit."""
