"""`parquet-sink history`: what connectors sent, listed, summed up, and looked up by offset."""
