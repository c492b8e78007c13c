"""The block engine: rows of text to rows of ids."""
