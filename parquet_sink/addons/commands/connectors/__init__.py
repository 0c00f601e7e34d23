"""`parquet-sink connectors`: the connectors of a worker, looked at and changed over its REST API."""
