"""Flink: by a job server, or as a cluster that is set up for tokbeam, with workers that start warm."""
