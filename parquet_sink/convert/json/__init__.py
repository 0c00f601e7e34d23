"""JSON without a schema."""
