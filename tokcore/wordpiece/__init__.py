"""WordPiece, as in BERT: words are segmented into the longest pieces, all but the first with `##`."""
