"""One connector's life, and the worker that hosts many."""
