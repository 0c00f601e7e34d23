"""Tests of a connector file: records in, rows, columns, rejected records, tables and file names out."""
