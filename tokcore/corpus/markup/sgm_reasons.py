"""Why lines of SGM may be left out, beside what holds for all formats."""

OUTSIDE_SEGMENT = 'outside_segment'
"""The line has text, and that in no segment."""
