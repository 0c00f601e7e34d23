"""`parquet-sink parked`: records that were passed over, listed, shown, sent again or dropped."""
