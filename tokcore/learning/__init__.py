"""What learners share: suffix tries of ranked text, and the search for a size."""
