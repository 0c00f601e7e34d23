"""What connector classes of sources share: keys, checks, and the way to settings."""
