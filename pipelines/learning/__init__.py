"""Learners on Beam, and what they keep to go on from."""
