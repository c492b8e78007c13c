"""What a finished dataset proves: its files verified, its rows traced to the corpus and made again."""
