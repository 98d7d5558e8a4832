"""Integration with git: hooks that check the board, trailers that name the lease, installation."""
