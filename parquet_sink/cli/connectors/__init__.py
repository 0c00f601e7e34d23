"""`parquet-sink connectors`: the connectors of a worker, asked about and told what to do over its REST API."""
