"""Runners, threads and progress: what runs a pipeline, and with how many resources."""
