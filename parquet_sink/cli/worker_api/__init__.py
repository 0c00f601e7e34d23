"""A client of a worker's REST API, for commands: where it is, as whom it is asked, what it answered."""
