"""The sample of a corpus that a vocabulary is counted from."""
