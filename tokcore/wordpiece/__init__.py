"""WordPiece, as BERT has it: words cut into the longest pieces, `##` before all but the first."""
