"""TensorFlow NMT's rule of batches, restated in plain Python over lists of ids."""


def plain_training_batches(
    pairs,
    *,
    batch_size,
    num_buckets=5,
    source_max_length=None,
    target_max_length=None,
    start,
    end,
    pad_source,
    pad_target,
    num_shards=1,
    shard_index=0,
    skip_count=None,
):
    """Returns dictionaries of lists, in the order in which batches come without a shuffle.

    `pairs` are (source ids, target ids) of all lines.
    """
    own = pairs[shard_index::num_shards][skip_count or 0 :]
    kept = [(source, target) for source, target in own if source and target]
    cut = [
        (source[: source_max_length or None], target[: target_max_length or None])
        for source, target in kept
    ]
    batches, waiting = [], {}
    for source, target in cut:
        bucket = bucket_of(len(source), len(target) + 1, num_buckets, source_max_length)
        waiting.setdefault(bucket, []).append((source, target))
        if len(waiting[bucket]) == batch_size:
            batches.append(waiting.pop(bucket))
    batches += [waiting[bucket] for bucket in sorted(waiting)]
    return [as_batch(each, start, end, pad_source, pad_target) for each in batches]


def bucket_of(source_length, target_length, num_buckets, source_max_length):
    if num_buckets <= 1:
        return 0
    width = 10
    if source_max_length:
        width = (source_max_length + num_buckets - 1) // num_buckets
    return min(num_buckets, max(source_length // width, target_length // width))


def as_batch(pairs, start, end, pad_source, pad_target):
    inputs = [[start, *target] for _, target in pairs]
    outputs = [[*target, end] for _, target in pairs]
    return {
        'source': padded([source for source, _ in pairs], pad_source),
        'target_input': padded(inputs, pad_target),
        'target_output': padded(outputs, pad_target),
        'source_sequence_length': [len(source) for source, _ in pairs],
        'target_sequence_length': [len(target) + 1 for _, target in pairs],
    }


def padded(rows, pad):
    width = max(map(len, rows))
    return [[*row, *[pad] * (width - len(row))] for row in rows]
