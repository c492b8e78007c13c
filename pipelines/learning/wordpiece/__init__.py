"""WordPiece's learner on Beam: endings weighed where the words are."""
