"""Bytes as ids: nothing to learn, and no file."""
