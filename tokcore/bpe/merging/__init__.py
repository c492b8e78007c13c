"""Models of byte pair encoding for the block engine: merges by rank, and the longest piece.

    Units ─ put_symbols ─▶ symbols ─ merge_short, merge_long ─▶ ids     MergeModel
    PairTable (node, character) ─▶ node ─ segment_by_length ─▶ ids      LongestPieceModel

Both find pairs of numbers in a `PairTable`.
"""
