"""Byte pair encoding: a token's bytes or characters, of which adjacent ones become one, by rank.

`merging` has the kernels, `vocabulary` the files, `learning` the learner. Here they are a scheme
and a tokenizer, and what is around them: added tokens, lines of pieces, the textbook's words.
"""
