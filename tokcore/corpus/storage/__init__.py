"""Files as they are stored, and their decompressed text."""
