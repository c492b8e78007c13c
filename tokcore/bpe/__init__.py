"""Byte pair encoding: the bytes or characters of a token are merged pair by pair, by rank.

Begin with `plain_iteration`. `trainer` learns merges and `model` applies them; `vocabulary` and
`files` are those of `tokenizers`, `codes` those of subword-nmt and the textbook.
"""
