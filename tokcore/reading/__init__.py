"""Reads what `build` and `encode` wrote, for training: rows, and batches of NumPy arrays.

    shards ─ `shards` ─▶ windows of rows ─ `batch_iterator` ─▶ rows in an epoch's order
    rows ─ a rule of `batching` ─▶ buckets ─ `batch_iterator` ─▶ padded arrays

TensorFlow is used in `tensorflow` only.
"""
