"""The reference push target: stores uploaded Parquet files, upserts them into DuckDB, and misbehaves to order."""
