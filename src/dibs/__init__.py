"""dibs: one task, one owner."""

__version__ = "0.1.0"
