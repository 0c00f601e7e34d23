"""The consumer group's offsets: read, signed and committed without being a member."""
