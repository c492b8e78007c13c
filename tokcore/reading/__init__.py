"""Reads what `build` and `encode` wrote, for training: rows, and batches of NumPy arrays.

    manifest ─ `manifest` ─▶ shards ─ `shards` ─▶ rows, in windows or by number
    rows ─ `ordered_rows`, or `mixture` of several datasets ─▶ rows in an epoch's order
    rows in order ─ `batch_iterator`, by a rule of `batching` or `packing` ─▶ arrays

`dataset.open_dataset` is the way in. Only `tensorflow`, `torch` and `grain` import those packages.
"""
