"""Where each accepted file is kept a second time, under the same name, and read back from."""
