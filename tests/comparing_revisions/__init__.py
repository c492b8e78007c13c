"""The same corpora built by this checkout and by another revision, compared byte by byte.

`python -m tests.comparing_revisions --against REVISION` runs every command over texts of each kind
with both, and prints a table of all files that either made. `--corpora` names a folder with real
text, without which text is generated. It ends with status 1 if a file differs that need not.
"""
