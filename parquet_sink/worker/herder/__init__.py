"""What may be asked of a worker about its connectors: values, errors, the protocol between askers and the worker."""
