"""Agent harnesses: what their hooks say, what they are answered, and how they are set up."""
