"""Compiles the kernels that a job needs, before it begins.

A first run compiles for some twenty seconds. numba compiles one kernel of a process at a time, and
keeps compiled kernels on disk; so processes that run a few lines through a part of the job compile
several at once, and the job finds them there. Worker processes too, each of which would otherwise
compile the same kernels.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import pathlib
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tokcore.bpe.cutting import learn_by_cutting
from tokcore.bpe.model_kernels import SHORT
from tokcore.bpe.options import PRESETS
from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.formats import all_formats
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.tables import BlockCounter, TableMerger, partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.cache_folder import source_digest
from tokcore.kernels.jit import CACHE_FOLDER, IS_DISABLED, read_only
from tokcore.kernels.sorting import SortedRows
from tokcore.records.examples import Feature, FeatureEncoder, encode_block
from tokcore.records.tfrecord import FramedRows, sort_rows, split_by_bucket
from tokcore.schemes import find_scheme
from tokcore.subword.segmenting import Segmenter, escaped_batches, pack_all_suffixes
from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    merge_suffix_tables,
)
from tokcore.subword.sweep import merge_selections, order_subtokens, select_partition
from tokcore.text.pre_tokenizer import CharacterRuns
from tokcore.text.unicode import alphanumeric_table

_TOKENS = (b'one', b'ones', b'two')

_MANY_TOKENS = 3_000
"""More than a table has room for at first, so that the kernel that grows it runs."""

_VOCABULARY_SIZE = 300
"""More than the bytes that some schemes begin with."""

_TEXT = 'one two\tÄ 字 👍\r\nthree,\t四 5\n'.encode()


PROCESS_BYTES = 400 << 20
"""The memory of a process that compiles: imports, numba, and LLVM at work on the largest kernel."""

_COMPILE = """
import gc, pickle, sys
gc.set_threshold(200_000, 20, 100)
sys.path[:] = pickle.load(sys.stdin.buffer)
import tokcore.warm_up
import numba.core.event

class Compiled(numba.core.event.Listener):
    def on_start(self, event): pass
    def on_end(self, event): print(flush=True)

with numba.core.event.install_listener('numba:compile', Compiled()):
    tokcore.warm_up.PARTS[sys.argv[1]](pickle.load(sys.stdin.buffer))
sys.exit(tokcore.kernels.jit.unkept_reason())
"""


def missing_parts(scheme: Scheme, parts: Sequence[str]) -> list[str]:
    """Returns the parts of a job whose kernels `compile_in_processes` has not compiled here yet.

    Where kernels are not compiled, or no folder can keep them, there are none.
    """
    if CACHE_FOLDER is None or IS_DISABLED:
        return []
    return [part for part in parts if not _mark(CACHE_FOLDER, scheme, part).exists()]


def compile_in_processes(
    scheme: Scheme, parts: Sequence[str], processes: int, done: Callable[[int], None]
) -> dict[str, str]:
    """Compiles the kernels of parts of a job in other processes, into the cache.

    Args:
        scheme: of the job.
        parts: some of `missing_parts`.
        processes: how many run at once.
        done: is called with a number of kernels, in all with those that `KERNELS` says.

    Returns the parts that failed, each with the last line of its error. What they have not compiled, or
    could not keep, is compiled when it is called.
    """
    assert CACHE_FOLDER is not None
    failed = {}
    arguments = pickle.dumps(sys.path) + pickle.dumps(scheme)
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        ending = {pool.submit(_compile, part, arguments, done): part for part in parts}
        for future in concurrent.futures.as_completed(ending):
            error = future.result()
            if error is not None:
                failed[ending[future]] = error
                continue
            with contextlib.suppress(OSError):  # the disk is full: it is compiled once more
                _mark(CACHE_FOLDER, scheme, ending[future]).touch()
    return failed


def _compile(part: str, arguments: bytes, done: Callable[[int], None]) -> str | None:
    """Compiles a part in a process; returns the last line of its error, None if there was none."""
    left = KERNELS[part]
    with tempfile.TemporaryFile() as errors:
        command = [sys.executable, '-c', _COMPILE, part]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors) as process:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:  # it has failed
                stdin.write(arguments)
            for _ in process.stdout:
                if left:
                    left -= 1
                    done(1)
        done(left)
        if not process.returncode:
            return None
        errors.seek(0)
        lines = errors.read().decode(errors='replace').strip().splitlines()
        return lines[-1] if lines else f'status {process.returncode}'


def _mark(folder: pathlib.Path, scheme: Scheme, part: str) -> pathlib.Path:
    """The empty file that says that the kernels of a part are in the cache."""
    # All code decides which kernels are called and with which types, not that of the kernels alone.
    state = repr((scheme.name, scheme.rules, source_digest()))
    digest = hashlib.sha256(state.encode()).hexdigest()[:16]
    return folder / f'compiled-{part}-{digest}'


def compile_learner_kernels() -> None:
    """Runs three tokens through two iterations of the subword learner, in both ways of counting."""
    data = read_only(np.frombuffer(b''.join(_TOKENS), np.uint8))
    offsets = read_only(np.cumsum([0, *map(len, _TOKENS)], dtype=np.int64))
    counts = read_only(np.ones(len(_TOKENS), np.int64))
    groups, every = PrefixPartitions((b'n',)), (0, 2)
    [batch] = escaped_batches(data, offsets, counts, 9)
    suffixes = pack_all_suffixes(batch, 9, groups, every)
    claimed = [select_partition(table, *groups.bounds(group), 1, 1) for group, table in suffixes]
    alphabet = ''.join(sorted(set(b''.join(_TOKENS).decode() + '_')))
    vocabulary = merge_selections(
        [selected for selected, _ in claimed], groups.borders, alphabet, 1
    )
    order_subtokens(vocabulary)
    frequent = [SuffixTable.from_bytes(table.to_bytes()) for _, table in claimed]
    segmenter = Segmenter(vocabulary, ('one_',), frequent)
    weights = segmenter.empty_weights()
    segmenter.weigh(batch, weights)
    tables = [
        *segmenter.tables(weights),
        *Segmenter(vocabulary, (), None).pack(batch, 9, groups, every),
    ]
    merge_suffix_tables(table for _, table in tables)


def compile_cutting_kernels() -> None:
    """Learns merges from a few cut words, of bytes and of characters."""
    table = TokenTable.from_items([('abab', 3), ('ab', 2), ('ba' * 2 * SHORT, 1)])
    for rules in (PRESETS['gpt2'], PRESETS['subword-nmt']):
        learn_by_cutting(lambda: [table], dataclasses.replace(rules, merges=3), 1)


def compile_kernels(scheme: Scheme) -> None:
    """Counts, encodes and shuffles a few lines of every format with a scheme."""
    compile_counting(scheme)
    compile_encoding(scheme)
    compile_records(scheme)


def compile_counting(scheme: Scheme) -> None:
    """Counts a few lines of every format with a scheme."""
    TableMerger().add(TokenTable.from_items((str(number), 1) for number in range(_MANY_TOKENS)))
    for block, split in _blocks():
        counter = BlockCounter(((0,),), scheme.counting_normalizer, scheme.pre_tokenizer)
        counter.add(block, (split,))
        [counted] = counter.finish()
        merger = TableMerger()
        for _, table in partition_table(counted, 2):
            merger.add(TokenTable.from_bytes(table.to_bytes()))
        merger.merged().sorted()


def compile_learning(scheme: Scheme) -> None:
    """Learns a vocabulary in memory from the tokens of a few lines; a scheme may have no learner."""
    if scheme.options is None:
        return
    words = ' '.join(_TEXT.decode().split())
    tokens = list(scheme.tokens(words))
    table = TokenTable.from_items(collections.Counter(tokens).items())
    table = dataclasses.replace(table, last_word=tokens[-1][:-1].encode())
    # A learner may find that there are not so many entries, once its kernels have run.
    with contextlib.suppress(InputError):
        scheme.learn(table, scheme.options(vocab_size=_VOCABULARY_SIZE), lambda *_: None)


def compile_encoding(scheme: Scheme) -> None:
    """Turns a few lines of every format into ids of a scheme."""
    feature = _feature(scheme)
    for block, split in _blocks():
        rows = select_rows(block, (split,), scheme.normalizer)
        feature.tally(rows, feature.encode(rows, feature.feature.prefix))


def compile_records(_scheme: Scheme) -> None:
    """Makes records of a few lines of every format and shuffles them; with ids of any scheme, so bytes."""
    scheme = find_scheme('byte')
    for block, split in _blocks():
        rows = encode_block(block, (_feature(scheme),), 0, (split,), scheme.normalizer).rows
        lengths = rows.lengths.astype(np.uint32)
        starts = row_offsets(lengths)[:-1]
        SortedRows.of(rows.keys, rows.records, starts, lengths, rows.sizes).records()
        sort_rows([FramedRows.from_bytes(part.to_bytes()) for _, part in split_by_bucket(rows, 2)])


def _feature(scheme: Scheme) -> FeatureEncoder:
    vocabulary = scheme.vocabulary_of(sorted(set(_TEXT.decode())))
    return FeatureEncoder(
        Feature('targets', 0, 'a prefix '),
        scheme.encoder(vocabulary),
        scheme.template(vocabulary),
        vocabulary.special_ids.unknown,
    )


def compile_characters(scheme: Scheme) -> None:
    """Counts the characters and words of a line, as a report does; they are the same for all schemes."""
    text = with_margin(np.frombuffer(_TEXT, np.uint8))
    runs = CharacterRuns.of(alphanumeric_table(), text)
    TokenAccumulator().add_rows(text, np.array([0]), np.array([len(_TEXT)]), runs)


def _blocks() -> Iterator[tuple[Block, Split]]:
    """Yields a block of each format, with the same text, and the split that it is of."""
    file, text = CorpusFile('warm-up', 'warm-up', len(_TEXT), False), BlockText(0, _TEXT)
    for kind in all_formats():
        if kind.takes_any_text:
            corpus_format, sides = kind(), len(kind.roles)
            yield (
                Block(kind.name, corpus_format, 0, (text,) * sides),
                Split(kind.name, corpus_format, ((file,) * sides,)),
            )


PARTS: dict[str, Callable[[Scheme], None]] = {
    'counting': compile_counting,
    'learning': compile_learning,
    'encoding': compile_encoding,
    'records': compile_records,
    'characters': compile_characters,
}
"""The parts of a job by name, those that take longest to compile first."""

KERNELS = {'counting': 50, 'learning': 40, 'encoding': 70, 'records': 30, 'characters': 5}
"""How many kernels a part compiles, about; schemes differ."""
