"""Runners, threads and bounds: what runs a pipeline, and with how much."""
