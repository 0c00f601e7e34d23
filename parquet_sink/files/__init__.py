"""Local Parquet files: accumulate, rotate, name, verify, clean up."""
