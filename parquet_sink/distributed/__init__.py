"""Several workers that run one set of connectors."""
