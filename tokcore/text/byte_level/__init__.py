"""Rows as byte-level byte pair encoding takes them: cut by a pattern, with all of their bytes kept.

    raw_lines          rows as they are, or brought into a normal form of Unicode
    plain_patterns     what the patterns of GPT-2 and cl100k find, as regular expressions
    pattern_scanning   the same as a kernel: one bit a byte, set where a token begins
    alphabet           bytes as the characters that files write for them
"""
