"""Single message transforms and predicates as Kafka Connect and Debezium have them."""
