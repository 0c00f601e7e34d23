"""The state store as an SQLite file in the connector's folder below `tmp.dir`."""
