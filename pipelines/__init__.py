"""Apache Beam jobs over tokcore: reading, counting, learning and encoding whole corpora.

The transforms are dataclasses; they are not frozen because Beam sets attributes of its own on them.
"""
