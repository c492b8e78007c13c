"""Vocabularies of byte pair encoding, and their files.

    tokenizer.json, vocab.json + merges.txt ─ tokenizer_json ─▶ BpeVocabulary
    codes of subword-nmt and the textbook   ─ codes_file ─▶ NmtVocabulary, TextbookVocabulary

`vocabulary_files` tells which a file is. A vocabulary's `model` gives ids; codes have ids only if a
list of pieces is there, and their `piece_model` gives numbers of symbols instead.
"""
