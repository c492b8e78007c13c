"""Tables of tokens and their counts."""
