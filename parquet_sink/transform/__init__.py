"""What may happen to records between decoding and shaping."""
