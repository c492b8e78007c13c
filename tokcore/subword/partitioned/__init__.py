"""The learner cut into ranges of suffixes, for many workers."""
