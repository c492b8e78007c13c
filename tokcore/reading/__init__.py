"""Reads what `build` and `encode` wrote, for training: rows, and batches of NumPy arrays.

    manifest ─ `manifest` ─▶ shards ─ `shards` ─▶ windows of rows
    windows ─ `batch_iterator` ─▶ rows in an epoch's order ─ a rule of `batching` ─▶ padded arrays

`dataset.open_dataset` is the way in. Only `tensorflow`, `torch` and `grain` import those packages.
"""
