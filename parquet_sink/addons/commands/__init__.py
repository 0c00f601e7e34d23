"""Commands beside those that run a worker: what they show, they ask of a worker or of connector files."""
