"""Text, bytes and numbers: values without structure."""
