"""From the bytes of a corpus to rows: lines, columns and pairs of lines."""
