"""Reading from Kafka: admission, ranges, blocks, group offsets."""
