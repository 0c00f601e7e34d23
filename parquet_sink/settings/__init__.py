"""What one connector runs from: a frozen dataclass for each kind of connectors, handed to its processes by value."""
