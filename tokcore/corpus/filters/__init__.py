"""Filters of rows: what one is, which there are, and which rows of a corpus are taken."""
