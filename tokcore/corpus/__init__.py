"""What a corpus is, its formats and line rules, and how it is cut and read."""
