"""What `build` and `encode` wrote, read back for training: rows, and batches of NumPy arrays.

    shards ─ shard_rows ─▶ windows of rows ─ epoch_order ─▶ rows in an epoch's order
    rows ─ a batch rule (nmt_batches, budget_batches) ─▶ buckets ─ batch_iterator ─▶ padded arrays

No TensorFlow here but in `tensorflow_batches`, and in `text`, whose batches its operations make.
"""
