"""What the processes of one connector tell each other."""
