"""Values cast from one type to another: exactly, one by one, and columns at once."""
