"""Keys, values and headers to bytes, as the converters of Kafka Connect write them."""
