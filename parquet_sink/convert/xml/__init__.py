"""XML documents to records."""
