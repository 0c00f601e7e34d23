"""`parquet-sink archive`: what is in the archive of a connector, and whether it is what was sent."""
