"""A query over records, row by row, in DuckDB."""
