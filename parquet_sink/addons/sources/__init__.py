"""Where records for Kafka come from: the protocol of a source's task, and the sources that are built in."""
