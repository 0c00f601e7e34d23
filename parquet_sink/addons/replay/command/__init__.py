"""`parquet-sink replay`: what was delivered is sent again, or elsewhere, and compared with the first time."""
