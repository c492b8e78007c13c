"""Batches as a `tf.data.Dataset`: of a dataset, or of lines of text as in TensorFlow NMT.

`training_batches` returns what NMT's `get_iterator` does (nmt/utils/iterator_utils.py), and
`inference_batches` what `get_infer_iterator` does, with TensorFlow's own operations; vocabulary
files have one word a line, special ones first, as for `check_vocab`.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import tensorflow as tf

from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.reading.batching import Batch, Signature
from tokcore.regular_files import open_regular

_BUCKET_WIDTH = 10
"""Lengths in a bucket, where `source_max_length` is not given."""

_BUFFER_BATCHES = 1000

Paths = str | os.PathLike | Sequence[str | os.PathLike]

_GZIP = b'\x1f\x8b'

UNKNOWN_ID = 0

_FEWEST_WORDS = 3


class _Batches(Iterable[Batch], Protocol):
    """What is used of a `BatchIterator`."""

    def signature(self) -> Signature: ...

    def state(self) -> dict[str, object]: ...


def as_tensorflow(iteration: Callable[[int], _Batches]) -> tf.data.Dataset:
    """Returns a dataset of the batches of `iteration`, a function of the iteration's number from 0.

    Its elements are dictionaries of int32 tensors with the names, shapes and values of the batches.
    A distribution strategy does not shard them again: that is what readers do.
    """
    numbers = itertools.count()
    return _generated(lambda: iteration(next(numbers)), _signature(iteration(0)))


def with_states(batches: _Batches) -> tf.data.Dataset:
    """Returns a dataset of the batches of an iterator, each with the state after it as `state`."""
    iterations = itertools.count()

    def elements() -> Iterator[dict[str, object]]:
        if next(iterations):
            raise InputError(
                'these batches are iterated over once, and were; go on with Dataset.from_state, or use '
                'Dataset.tensorflow for several epochs'
            )
        for batch in batches:
            yield {**batch, 'state': json.dumps(batches.state())}

    return _generated(elements, {**_signature(batches), 'state': tf.TensorSpec((), tf.string)})


def _signature(batches: _Batches) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec(shape, tf.as_dtype(dtype))
        for name, (shape, dtype) in batches.signature().items()
    }


def _generated(
    generator: Callable[[], Iterable[dict]], signature: dict[str, tf.TensorSpec]
) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_generator(generator, output_signature=signature)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


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
    """Returns batches of all lines in order, empty ones too.

    Args:
        source: text files, plain or gzip.
        source_vocabulary: a file of words; see `vocabulary_words`.
        batch_size: lines of a batch at most.
        end_token: the special token whose id is padding.
        source_max_length: lines are cut to so many words; None or 0: they are not.
        start_token, unknown_token: the other special tokens of the vocabulary.

    Returns:
        dictionaries: `source` int32 [batch, length], `source_sequence_length` int32 [batch].

    Raises:
        InputError: a file cannot be read, or the vocabulary cannot be used.

    Examples:
        >>> batch = next(iter(tokcore.inference_batches('train.en', 'words.txt', batch_size=8)))
        >>> batch['source'].shape.as_list(), batch['source_sequence_length'].numpy().tolist()
        ([8, 13], [8, 11, 13, 7, 13, 11, 10, 9])
    """
    if batch_size < 1:
        raise InputError(f'batch_size is {batch_size}; give 1 or more')
    words = vocabulary_words(source_vocabulary, (unknown_token, start_token, end_token))
    table = _lookup_table(words)

    def example(line: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = _ids(_words(line), table, source_max_length)
        return {'source': ids, 'source_sequence_length': tf.size(ids)}

    padding = {'source': words.index(end_token), 'source_sequence_length': 0}
    return _text_lines(source).map(example).padded_batch(batch_size, padding_values=padding)


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
    """Returns batches of the pairs of which both sides have words.

    Pairs of lines are sharded, skipped, shuffled, split at U+0020, filtered, cut, looked up and put
    into `num_buckets` + 1 buckets by the longer side, in this order. At the end the partly full
    buckets follow by ascending length.

    Args:
        source, target: text files, plain or gzip, a pair on each line.
        source_vocabulary, target_vocabulary: files of words; see `vocabulary_words`.
        batch_size: pairs of a batch at most.
        num_buckets: up to 1: there are no buckets.
        source_max_length, target_max_length: lines are cut to so many words; None or 0: they are not.
        start_token, end_token, unknown_token: the special tokens of both vocabularies.
        shuffle_buffer: pairs that are shuffled at a time; None: 1,000 batches of them; 0: none.
        seed: of the shuffle.
        reshuffle: whether each iteration has another order.
        num_shards, shard_index: every `num_shards`-th pair from this on.
        skip_count: pairs of the shard that are skipped in each iteration.

    Returns:
        dictionaries: `source`, `target_input`, `target_output` int32 [batch, length], padded with
        the end token's ids; `source_sequence_length`, `target_sequence_length` int32 [batch], the
        latter with the start token.

    Raises:
        InputError: a file cannot be read, a vocabulary cannot be used, or a number is out of range.
        tf.errors.InvalidArgumentError: during an iteration, if one side has more lines.

    Examples:
        >>> batches = tokcore.training_batches('train.en', 'train.en', 'words.txt', 'words.txt', batch_size=8)
        >>> sorted(next(iter(batches)))
        ['source', 'source_sequence_length', 'target_input', 'target_output', 'target_sequence_length']
    """
    if batch_size < 1 or num_shards < 1 or not 0 <= shard_index < num_shards:
        raise InputError(
            f'batch_size {batch_size}, num_shards {num_shards} and shard_index {shard_index} must '
            'be 1 or more, and the last below the second'
        )
    special = (unknown_token, start_token, end_token)
    source_words = vocabulary_words(source_vocabulary, special)
    target_words = vocabulary_words(target_vocabulary, special)
    source_table, target_table = _lookup_table(source_words), _lookup_table(target_words)
    start, end = (target_words.index(token) for token in (start_token, end_token))
    source_end = source_words.index(end_token)

    pairs = _pairs(_text_lines(source), _text_lines(target)).shard(num_shards, shard_index)
    if skip_count is not None:
        pairs = pairs.skip(skip_count)
    buffer = batch_size * _BUFFER_BATCHES if shuffle_buffer is None else shuffle_buffer
    if buffer:
        pairs = pairs.shuffle(buffer, seed, reshuffle)
    pairs = pairs.map(lambda first, second: (_words(first), _words(second)))
    pairs = pairs.filter(lambda first, second: tf.size(first) > 0 and tf.size(second) > 0)

    def example(first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        first = _ids(first, source_table, source_max_length)
        second = _ids(second, target_table, target_max_length)
        target_input = tf.concat([[start], second], 0)
        return {
            'source': first,
            'target_input': target_input,
            'target_output': tf.concat([second, [end]], 0),
            'source_sequence_length': tf.size(first),
            'target_sequence_length': tf.size(target_input),
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
    width = _BUCKET_WIDTH
    if source_max_length:
        width = (source_max_length + num_buckets - 1) // num_buckets

    def bucket(pair: dict[str, tf.Tensor]) -> tf.Tensor:
        lengths = pair['source_sequence_length'], pair['target_sequence_length']
        number = tf.maximum(*(length // width for length in lengths))
        return tf.cast(tf.minimum(num_buckets, number), tf.int64)

    return examples.group_by_window(bucket, lambda _, window: padded(window), batch_size)


def _pairs(source: tf.data.Dataset, target: tf.data.Dataset) -> tf.data.Dataset:
    """Zips two sides; it is an error if one ends before the other."""
    ends = tf.data.Dataset.from_tensors((b'', False)).repeat()

    def marked(lines: tf.data.Dataset) -> tf.data.Dataset:
        return lines.map(lambda line: (line, True)).concatenate(ends)

    def checked(
        first: tuple[tf.Tensor, tf.Tensor], second: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        message = 'the {} side has more lines than the other; give files whose lines are pairs'
        sides = (first[1], message.format('target')), (second[1], message.format('source'))
        checks = [tf.debugging.Assert(has_line, [text]) for has_line, text in sides]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return tf.identity(first[0]), tf.identity(second[0])

    zipped = tf.data.Dataset.zip((marked(source), marked(target)))
    return zipped.take_while(lambda first, second: first[1] or second[1]).map(checked)


def _text_lines(paths: Paths) -> tf.data.Dataset:
    """Returns the lines of files, plain or gzip, one after another.

    Raises:
        InputError: there is no file, or one cannot be read or is not a regular file.
    """
    names = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not names:
        raise InputError('no text file is given')
    lines: tf.data.Dataset | None = None
    for path in [os.fspath(name) for name in names]:
        try:
            with open_regular(path) as file:
                compression = 'GZIP' if file.read(len(_GZIP)) == _GZIP else ''
        except OSError as error:
            raise InputError(
                f'{path} cannot be read ({error.strerror}); give a text file'
            ) from error
        more_lines = tf.data.TextLineDataset(path, compression)
        lines = more_lines if lines is None else lines.concatenate(more_lines)
    return lines


def _lookup_table(words: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a table of the ids of words, int64; other words have `UNKNOWN_ID`."""
    keys = tf.constant([word.encode() for word in words], tf.string)
    ids = tf.range(len(words), dtype=tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, ids), UNKNOWN_ID)


def _words(line: tf.Tensor) -> tf.Tensor:
    """Returns the words between blanks (only U+0020), string [words]."""
    words = tf.strings.split(line, ' ')
    return tf.boolean_mask(words, tf.strings.length(words) > 0)


def _ids(words: tf.Tensor, table: tf.lookup.StaticHashTable, most: int | None) -> tf.Tensor:
    """Returns the ids of the first words, int32 [words]."""
    return tf.cast(table.lookup(words[:most] if most else words), tf.int32)


def vocabulary_words(path: str | os.PathLike, special: Sequence[str]) -> list[str]:
    r"""Returns the words of a vocabulary file by id.

    The special tokens, unknown, start and end, must be the first words; if a file has none of them, they
    are put before its words, as in `check_vocab`. Lines end at '\n'; '\r' is removed.

    Raises:
        InputError: the file cannot be read, has fewer than three words, a blank line, a word twice,
            or special tokens elsewhere: with these the original fails to make its table.
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
    if len(words) < _FEWEST_WORDS:
        raise InputError(
            f'{name} has {len(words)} words; give a vocabulary of {_FEWEST_WORDS} or more'
        )
    if words[: len(special)] == list(special):
        return words
    misplaced = [f'{token} on line {seen[token]}' for token in special if token in seen]
    if misplaced:
        raise InputError(
            f'{name} has {", ".join(misplaced)}, but must begin with the lines {" ".join(special)}; move '
            'them there, or take them all out and they are put there'
        )
    return [*special, *words]
