"""Corpora with named fields: JSON lines."""
