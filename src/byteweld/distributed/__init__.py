"""Work that is divided among tasks, and put together again: the same result as on one machine."""
