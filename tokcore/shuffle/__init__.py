"""Sorted runs: rows by key, written once and merged."""
