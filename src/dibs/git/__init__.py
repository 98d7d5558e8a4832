"""The fence carried into git: hooks that ask the board, trailers that name the lease, setup."""
