"""The rules of the formats, as plainly as they can be written, and files drawn to test them.

Unit tests compare what readers make of drawn files with these rules; `tests/faults/fuzzing` does so with what
commands make of them.
"""
