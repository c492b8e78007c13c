"""What is asked for: which corpus, and how it is shuffled."""
