"""The history as an SQLite file beside the connector's state."""
