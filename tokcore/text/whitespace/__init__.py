"""Rows stripped of white space, and cut at it."""
