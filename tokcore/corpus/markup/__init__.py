"""Formats of marked-up text: SGM, and TMX."""
