"""The commands of `parquet-sink`: what each has for options, does, and prints."""
