"""Tokenizers of trained models, from their files: encoded with as the libraries do that wrote them.

    a file ─ files, tokenizer_json, ranks, sentencepiece ─▶ PretrainedVocabulary
    a row ─ added_tokens ─▶ texts between added tokens
          ─ normalizers ─▶ texts ─ pre_tokenizers ─▶ tokens ─ model ─▶ ids ─ template ─▶ ids

Whatever a file has that is not supported is refused by its name and its place in the file.
"""
