"""A notice for each accepted file: into a topic before its offsets are committed, to a webhook behind that."""
