"""Tensor2Tensor's subword scheme: encoder, learner, and the search over min-counts."""
