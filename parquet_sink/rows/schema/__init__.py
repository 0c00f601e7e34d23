"""A topic's columns: types, how they grow, what is learned."""
