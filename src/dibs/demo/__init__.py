"""`dibs demo`: eight agents and two people share a board; some are killed, one becomes a zombie."""
