"""Batches of pairs as TensorFlow NMT's `get_iterator` gives them (nmt/utils/iterator_utils.py)."""

from __future__ import annotations

import os

import tensorflow as tf

from tokcore.errors import InputError
from tokcore.reading.text.text_tensors import Paths, ids_of, lookup_table, text_lines, words_of
from tokcore.reading.text.vocabulary_words import vocabulary_words

_WIDTH = 10
"""Of a bucket, where no greatest length of the source is given."""

_BUFFER_BATCHES = 1000


def training_batches(
    source: Paths,
    target: Paths,
    source_vocabulary: str | os.PathLike,
    target_vocabulary: str | os.PathLike,
    *,
    batch_size: int,
    num_buckets: int = 5,
    source_max_length: int | None = None,
    target_max_length: int | None = None,
    start_token: str = '<s>',
    end_token: str = '</s>',
    unknown_token: str = '<unk>',
    shuffle_buffer: int | None = None,
    seed: int | None = None,
    reshuffle: bool = True,
    num_shards: int = 1,
    shard_index: int = 0,
    skip_count: int | None = None,
) -> tf.data.Dataset:
    """Returns batches of pairs whose sides both have words.

    Pairs of lines are sharded, skipped, shuffled, split at U+0020, filtered, cut, looked up and put
    into `num_buckets` + 1 buckets by the longer side, in this order. What a bucket holds at the end
    comes by ascending length.

    Args:
        source, target: text files, plain or gzip, a pair on each line.
        source_vocabulary, target_vocabulary: files of words; see `vocabulary_words`.
        batch_size: pairs of a batch, at most.
        num_buckets: up to 1 makes none: batches are as pairs come.
        source_max_length, target_max_length: words that are kept of a line; None or 0: all.
        start_token, end_token, unknown_token: the special tokens of both vocabularies.
        shuffle_buffer: pairs that are shuffled at a time; None: 1,000 batches of them; 0: none.
        seed: of the shuffle.
        reshuffle: another order each time that the dataset is iterated over.
        num_shards, shard_index: every `num_shards`-th pair from this on.
        skip_count: pairs of the shard that are skipped, whenever it is iterated over.

    Returns:
        dictionaries: `source`, `target_input`, `target_output` int32 [batch, length], padded with
        the end token's ids; `source_sequence_length`, `target_sequence_length` int32 [batch], the
        latter with the start token.

    Raises:
        InputError: a file cannot be read, a vocabulary cannot be used, or a number cannot be.
        tf.errors.InvalidArgumentError: while it is iterated over, if one side has more lines.
    """
    if batch_size < 1 or num_shards < 1 or not 0 <= shard_index < num_shards:
        raise InputError(
            f'batch_size {batch_size}, num_shards {num_shards} and shard_index {shard_index} must '
            'be 1 or more, and the last below the second'
        )
    special = (unknown_token, start_token, end_token)
    source_words = vocabulary_words(source_vocabulary, special)
    target_words = vocabulary_words(target_vocabulary, special)
    source_table, target_table = lookup_table(source_words), lookup_table(target_words)
    start, end = (target_words.index(token) for token in (start_token, end_token))
    source_end = source_words.index(end_token)

    pairs = _pairs(text_lines(source), text_lines(target)).shard(num_shards, shard_index)
    if skip_count is not None:
        pairs = pairs.skip(skip_count)
    buffer = batch_size * _BUFFER_BATCHES if shuffle_buffer is None else shuffle_buffer
    if buffer:
        pairs = pairs.shuffle(buffer, seed, reshuffle)
    pairs = pairs.map(lambda first, second: (words_of(first), words_of(second)))
    pairs = pairs.filter(lambda first, second: tf.size(first) > 0 and tf.size(second) > 0)

    def example(first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        first = ids_of(first, source_table, source_max_length)
        second = ids_of(second, target_table, target_max_length)
        given = tf.concat([[start], second], 0)
        return {
            'source': first,
            'target_input': given,
            'target_output': tf.concat([second, [end]], 0),
            'source_sequence_length': tf.size(first),
            'target_sequence_length': tf.size(given),
        }

    padding = {
        'source': source_end,
        'target_input': end,
        'target_output': end,
        'source_sequence_length': 0,
        'target_sequence_length': 0,
    }

    def padded(examples: tf.data.Dataset) -> tf.data.Dataset:
        return examples.padded_batch(batch_size, padding_values=padding)

    examples = pairs.map(example)
    if num_buckets <= 1:
        return padded(examples)
    width = _WIDTH
    if source_max_length:
        width = (source_max_length + num_buckets - 1) // num_buckets

    def bucket(each: dict[str, tf.Tensor]) -> tf.Tensor:
        lengths = each['source_sequence_length'], each['target_sequence_length']
        found = tf.maximum(*(length // width for length in lengths))
        return tf.cast(tf.minimum(num_buckets, found), tf.int64)

    return examples.group_by_window(bucket, lambda _, window: padded(window), batch_size)


def _pairs(source: tf.data.Dataset, target: tf.data.Dataset) -> tf.data.Dataset:
    """Zips two sides; a side that ends before the other is an error."""
    behind = tf.data.Dataset.from_tensors((b'', False)).repeat()

    def marked(lines: tf.data.Dataset) -> tf.data.Dataset:
        return lines.map(lambda line: (line, True)).concatenate(behind)

    def checked(
        first: tuple[tf.Tensor, tf.Tensor], second: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        told = 'the {} side has more lines than the other; give files whose lines are pairs'
        sides = (first[1], told.format('target')), (second[1], told.format('source'))
        checks = [tf.debugging.Assert(there, [sentence]) for there, sentence in sides]
        with tf.control_dependencies([each for each in checks if each is not None]):
            return tf.identity(first[0]), tf.identity(second[0])

    zipped = tf.data.Dataset.zip((marked(source), marked(target)))
    return zipped.take_while(lambda first, second: first[1] or second[1]).map(checked)
