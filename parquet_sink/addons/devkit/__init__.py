"""For trying out, tests and development: a broker, the demo, the reference target."""
