"""Which rows of a corpus are taken."""
