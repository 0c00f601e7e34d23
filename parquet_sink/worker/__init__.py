"""Hosts many connectors: the loop, what may be asked of it, the REST API, metrics."""
