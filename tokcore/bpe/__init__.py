"""Byte pair encoding: a token's bytes or characters, of which adjacent ones are merged, by rank.

`trainer` learns merges and `model` applies them; `vocabulary` and `files` read what other programs
wrote; `codes` are those of subword-nmt and the textbook. `scheme` makes a scheme of all of it.
"""
