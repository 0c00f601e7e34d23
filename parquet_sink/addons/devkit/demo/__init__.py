"""The whole job on one machine, with proof: broker, target, an order stream, the sink as a user would run it."""
