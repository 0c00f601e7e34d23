"""What transforms of the fields of keys or values are built on, those of others too."""
