"""Byte pair encoding: a token's bytes or characters, of which adjacent ones become one, by rank.

    tokenizer.json, vocab.json + merges.txt ─ tokenizer_json ─▶ BpeVocabulary
    codes (subword-nmt's, the textbook's)   ─ codes_file ─▶ NmtVocabulary, TextbookVocabulary
                                              .model ─▶ merging.MergeModel, LongestPieceModel
"""
