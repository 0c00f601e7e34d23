"""Records that were diverted, kept in Parquet files until they are replayed: written whole or not at all."""
