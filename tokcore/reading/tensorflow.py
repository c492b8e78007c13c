"""Batches as a `tf.data.Dataset`: of a dataset's ids, or of lines as TensorFlow NMT has them.

`training_batches` gives what NMT's `get_iterator` does (nmt/utils/iterator_utils.py),
`inference_batches` what `get_infer_iterator` does, by TensorFlow's own operations; vocabulary files
are as `check_vocab` takes them, one word a line, special ones first. Only here is TensorFlow used.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence

import tensorflow as tf

from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.reading.batch_iterator import BatchIterator
from tokcore.regular_files import open_regular

_WIDTH = 10
"""Of a bucket, where no greatest length of the source is given."""

_BUFFER_BATCHES = 1000

Paths = str | os.PathLike | Sequence[str | os.PathLike]

_GZIP = b'\x1f\x8b'

UNKNOWN_ID = 0

_FEWEST = 3


def as_tensorflow(iteration: Callable[[int], BatchIterator]) -> tf.data.Dataset:
    """Returns a dataset whose every iteration is a pass: of its number, counted from 0.

    Its elements are dictionaries of int32 tensors of the same names, shapes and values. Processes
    of a strategy do not share them out again: readers are for that.
    """
    passes = itertools.count()
    signature = {
        name: tf.TensorSpec(shape, tf.as_dtype(dtype))
        for name, (shape, dtype) in iteration(0).signature().items()
    }
    made = tf.data.Dataset.from_generator(
        lambda: iteration(next(passes)), output_signature=signature
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(options)


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
            raise InputError(
                f'{path} cannot be read ({error.strerror}); give a text file'
            ) from error
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


def ids_of(words: tf.Tensor, table: tf.lookup.StaticHashTable, most: int | None) -> tf.Tensor:
    """Returns the ids of the first words, int32 [words]."""
    return tf.cast(table.lookup(words[:most] if most else words), tf.int32)


def vocabulary_words(path: str | os.PathLike, special: Sequence[str]) -> list[str]:
    r"""Returns the words of a vocabulary file by id.

    As in `check_vocab` the special tokens, which are to be the first words, are put before those of
    a file that has none of them. Lines end at '\n'; a '\r' before it goes.

    Args:
        path: of the file.
        special: the unknown, the start and the end token.

    Raises:
        InputError: the file cannot be read, has fewer than three words, a blank line, a word twice,
            or special tokens elsewhere: the original fails at these when its table is made.
    """
    name = os.fspath(path)
    try:
        lines = read_vocabulary_file(path).decode('utf-8').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(
            f'{name}: invalid UTF-8 at byte {error.start}; give a vocabulary in UTF-8'
        ) from error
    if lines[-1] == '':
        lines.pop()
    words = [line.replace('\r', '') for line in lines]
    seen: dict[str, int] = {}
    for number, word in enumerate(words, 1):
        if not word:
            raise InputError(f'{name}, line {number} is blank; take it out')
        if word in seen:
            raise InputError(
                f'{name}, line {number}: {word[:60]!r} is on line {seen[word]} too; take one of them '
                'out'
            )
        seen[word] = number
    if len(words) < _FEWEST:
        raise InputError(f'{name} has {len(words)} words; give a vocabulary of {_FEWEST} or more')
    if words[: len(special)] == list(special):
        return words
    there = [f'{token} on line {seen[token]}' for token in special if token in seen]
    if there:
        raise InputError(
            f'{name} has {", ".join(there)}, but must begin with the lines {" ".join(special)}; move '
            'them there, or take them all out and they are put there'
        )
    return [*special, *words]
