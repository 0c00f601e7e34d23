"""Text made unreadable: which fields, and how."""
