"""`dibs demo`: eight agents and two people on one board, with kills, a zombie, and one owner."""
