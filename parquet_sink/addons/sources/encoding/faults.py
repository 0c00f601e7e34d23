"""What is raised for one record that cannot be written."""


class NotEncodable(ValueError):
    """A converter has no bytes for a value. The text is a clause without a full stop, and never holds the content."""
