"""Shuffling through files: the plan, the runs, the shards."""
