"""What a corpus is, its formats and filters, and how it is cut and read."""
