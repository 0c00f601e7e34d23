"""`parquet-sink tune`: which thresholds give what matters."""
