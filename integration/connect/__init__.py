"""The real Kafka Connect as the judge of the REST API: the same requests to both, compared field by field."""
