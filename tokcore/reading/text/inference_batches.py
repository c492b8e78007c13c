"""Batches of lines as TensorFlow NMT's `get_infer_iterator` gives them."""

from __future__ import annotations

import os

import tensorflow as tf

from tokcore.errors import InputError
from tokcore.reading.text.text_tensors import Paths, ids_of, lookup_table, text_lines, words_of
from tokcore.reading.text.vocabulary_words import vocabulary_words


def inference_batches(
    source: Paths,
    source_vocabulary: str | os.PathLike,
    *,
    batch_size: int,
    end_token: str = '</s>',
    source_max_length: int | None = None,
    start_token: str = '<s>',
    unknown_token: str = '<unk>',
) -> tf.data.Dataset:
    """Returns batches of all lines in their order, empty ones among them.

    Args:
        source: text files, plain or gzip.
        source_vocabulary: a file of words; see `vocabulary_words`.
        batch_size: lines of a batch, at most.
        end_token: the special token whose id is padding.
        source_max_length: words that are kept of a line; None or 0: all.
        start_token, unknown_token: the other special tokens of the vocabulary.

    Returns:
        dictionaries: `source` int32 [batch, length], `source_sequence_length` int32 [batch].

    Raises:
        InputError: a file cannot be read, or the vocabulary cannot be used.
    """
    if batch_size < 1:
        raise InputError(f'batch_size is {batch_size}; give 1 or more')
    words = vocabulary_words(source_vocabulary, (unknown_token, start_token, end_token))
    table = lookup_table(words)

    def example(line: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = ids_of(words_of(line), table, source_max_length)
        return {'source': ids, 'source_sequence_length': tf.size(ids)}

    padding = {'source': words.index(end_token), 'source_sequence_length': 0}
    return text_lines(source).map(example).padded_batch(batch_size, padding_values=padding)
