"""Whole words as tokens, each with an id of its own or the unknown one's."""
