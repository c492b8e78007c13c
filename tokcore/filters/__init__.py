"""Filters of rows: the filters by name, and how a block is filtered."""
