"""Records that were passed over, kept in Parquet files until they are replayed: written whole or not at all."""
