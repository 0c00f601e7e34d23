"""`parquet-sink reshape`: raw files become the files that a shaped connector would have made."""
