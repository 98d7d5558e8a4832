"""Integration with agent harnesses: their hook events, our replies, installation."""
