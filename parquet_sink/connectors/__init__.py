"""Connector classes, and what all connectors of a process share: the worker file, loading, checking."""
