"""The same commands run by this checkout and by another revision, and all that they made compared.

`python -m tests.comparing_revisions` runs every command over small texts of each format with both, and
prints each file, field of a manifest, or refusal that differs and is not in `expected_differences.toml`.
It ends with status 1 if there is one, or if an entry of that file explains nothing. `--corpora` names a
folder with real text for the jobs of `jobs_compared.py`.
"""
