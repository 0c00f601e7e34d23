"""What Java's standard library does with numbers, texts and dates, where Kafka Connect's transforms show it."""
