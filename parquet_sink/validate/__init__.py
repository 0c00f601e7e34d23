"""What machine, brokers, registries and targets know against a connector file: `check`, and the start of `run`."""
