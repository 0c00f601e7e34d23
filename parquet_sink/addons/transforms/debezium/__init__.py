"""Debezium's ExtractNewRecordState: change events of tables to rows and deletions."""
