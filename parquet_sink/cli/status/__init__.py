"""`parquet-sink status`: how the connectors of a worker stand."""
