"""Backlogs that are files: read into the board, and kept up to date by it."""
