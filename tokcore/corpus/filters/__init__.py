"""Filters of rows: what one is, the filters by name, and how a block is filtered."""
