"""The stages of a job: count, merge, learn, encode, and all of them."""
