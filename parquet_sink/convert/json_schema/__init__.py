"""Records of JSON Schema."""
