"""How far each part of a source is in Kafka, kept beyond a run: in a file, or in a compacted topic."""
