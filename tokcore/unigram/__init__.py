"""Unigram language models, learned as SentencePiece's trainer does."""
