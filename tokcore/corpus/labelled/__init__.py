"""Texts whose labels stand in files of their own."""
