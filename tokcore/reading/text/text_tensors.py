"""Lines of files, and what becomes of one, as tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf

from tokcore.errors import InputError
from tokcore.reading.text.vocabulary_words import UNKNOWN_ID
from tokcore.regular_files import open_regular

Paths = str | os.PathLike | Sequence[str | os.PathLike]

_GZIP = b'\x1f\x8b'


def text_lines(paths: Paths) -> tf.data.Dataset:
    """Returns the lines of one file or of several, one after another, plain or gzip.

    Raises:
        InputError: a file cannot be read or is no regular one, or there is none.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise InputError('no text file is given')
    lines: tf.data.Dataset | None = None
    for path in map(os.fspath, given):
        try:
            with open_regular(path) as file:
                compression = 'GZIP' if file.read(len(_GZIP)) == _GZIP else ''
        except OSError as error:
            raise InputError(f'{path} cannot be read ({error.strerror}); give a text file') from error
        found = tf.data.TextLineDataset(path, compression)
        lines = found if lines is None else lines.concatenate(found)
    return lines


def lookup_table(words: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns the ids of words, int64; that of any other is `UNKNOWN_ID`."""
    keys = tf.constant([word.encode() for word in words], tf.string)
    ids = tf.range(len(words), dtype=tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, ids), UNKNOWN_ID)


def words_of(line: tf.Tensor) -> tf.Tensor:
    """Returns the words between blanks (U+0020 alone), string [words]."""
    words = tf.strings.split(line, ' ')
    return tf.boolean_mask(words, tf.strings.length(words) > 0)


def ids_of(
    words: tf.Tensor, table: tf.lookup.StaticHashTable, most: int | None
) -> tf.Tensor:
    """Returns the ids of the first words, int32 [words]."""
    return tf.cast(table.lookup(words[:most] if most else words), tf.int32)
