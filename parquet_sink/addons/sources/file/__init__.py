"""Lines of a file, as they are added, to a topic."""
