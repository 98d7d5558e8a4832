"""Backlogs in files: synced into the board, and updated by it."""
