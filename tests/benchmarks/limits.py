"""Each stage of `build`, next to what this machine allows.

A limit is the time for the least that a stage has to do, such as to read each byte of its text once and
to look each token up in a table. The time that a stage takes for a kilobyte of text is subtracted, since
every command pays it once.
"""

import functools
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from pipelines.cli.main import main
from tokcore.corpus.line_rows import text_rows
from tokcore.encoding.kernels import TOKENS, IdRows, Surround, _put_rows, encode_rows, look_up
from tokcore.kernels.bytes import GOLDEN_RATIO
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import prefetch
from tokcore.reading.record_index import parse_index
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.pre_tokenizer import ScannedTokens, readable_parts, scan_tokens

from .corpora import CHINESE, ENGLISH, Corpora
from .scale import Scale
from .stage_timer import StageTimer
from .stages.blocks import text_blocks

_PIECE = 1 << 20
_TABLES = {'near-look-up': 256 << 10, 'look-up': 8 << 20, 'far-look-up': 256 << 20}
"""Bytes of a hash table in L2, in L3 and in memory; the encoder's cache of tokens has 8 MiB."""

_ROUNDS = 5

_AHEAD = 32
"""A cache line is prefetched so many look-ups before it is read."""

_LEAST_SHARE = 0.005
"""Stages that take a smaller share of their phase are added to "the rest"."""

Limits = Mapping[str, float]
"""Nanoseconds for a byte, or for a look-up."""


def machine_limits(folder: Path, size: int) -> Limits:
    """Measures what this machine allows on `size` bytes, with a file in the folder."""
    source, target = np.arange(size // 8, dtype=np.uint64), np.empty(size // 8, np.uint64)
    pieces = [source.view(np.uint8)[start : start + _PIECE] for start in range(0, size, _PIECE)]
    path, digest, room = folder / 'limits.bytes', hashlib.sha256(), memoryview(bytearray(_PIECE))

    def write() -> None:
        with open(path, 'wb', buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    def read() -> None:
        with open(path, 'rb', buffering=0) as file:
            while file.readinto(room):
                pass

    limits = {
        'scan': _least(lambda: np.bitwise_or.reduce(source)) / size,
        'copy': _least(lambda: np.copyto(target, source)) / size,
        'first-copy': _least(lambda: source.copy()) / size,
        'crc32c': _least(lambda: [google_crc32c.value(piece) for piece in pieces]) / size,
        'sha256': _least(lambda: [digest.update(piece) for piece in pieces]) / size,
        'write': _least(write, lambda: path.unlink(missing_ok=True)) / size,
        'read': _least(read) / size,
    }
    path.unlink()
    for name, table_bytes in _TABLES.items():
        table = np.ones((min(table_bytes, size) // 64, 8), np.uint64)
        _look_up(table, 1)  # compiles it
        look_ups = size // 64
        limits[name] = _least(functools.partial(_look_up, table, look_ups)) / look_ups
    return limits


def _least(work: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Returns the nanoseconds of processor time of the fastest round."""
    rounds = []
    for _ in range(_ROUNDS):
        prepare()
        began = time.thread_time_ns()
        work()
        rounds.append(time.thread_time_ns() - began)
    return min(rounds)


@kernel_without_allocation
def _look_up(table, times):
    """Looks up keys scattered over a table of cache lines, with the encoder's prefetching."""
    mask, found, rows = np.uint64(len(table) - 1), 0, np.uint64(_AHEAD)
    for key in range(np.uint64(times)):
        prefetch(table, (_row_of(key + rows) & mask) * np.uint64(table.shape[1]))
        found += table[_row_of(key) & mask, 0] == key
    return found


@kernel_without_allocation
def _row_of(key):
    mixed = key * np.uint64(GOLDEN_RATIO)
    return (mixed ^ mixed >> np.uint64(29)) * np.uint64(GOLDEN_RATIO) >> np.uint64(20)


def encoding_parts(text: bytes, vocabulary: str) -> dict[str, float]:
    """Returns the seconds of each part of `encode_rows`: the whole minus what runs without the part."""
    encoder = SubwordTextEncoder.load(vocabulary).row_encoder()
    surround, seconds = Surround.of([], [1]), np.zeros(4)
    blocks = text_blocks(text)
    # Ones, not zeros, so that no page of memory is new while it is timed.
    ids = np.ones(max(len(block.data) for block in blocks) + 8 * TOKENS, np.int32)
    for block in blocks:
        side = text_rows(block.data, block.offset, T2T_LINES).sides[0]
        for rows in readable_parts(side.text, side.starts, side.ends):
            state, data = encoder._pre_tokenizer.prepare(rows)
            offsets = np.zeros(len(rows.starts) + 1, np.int64)
            tokens = ScannedTokens(data, *encoder._token_bounds, offsets.copy())
            out = IdRows(ids, 0, offsets)
            no_rows = rows.part(0, 0)
            _encode_in_part(no_rows, surround, state, encoder._cache, tokens, out, 0)  # compiles it
            began = time.thread_time()
            encode_rows(
                rows, surround, state, encoder._state, encoder._cache, tokens, encoder._work, out
            )
            seconds[3] += time.thread_time() - began
            for parts in range(3):
                began = time.thread_time()
                _encode_in_part(rows, surround, state, encoder._cache, tokens, out, parts)
                seconds[parts] += time.thread_time() - began
    names = 'find tokens', 'look tokens up', 'write ids', 'segment missed tokens'
    return dict(zip(names, np.diff(seconds, prepend=0).tolist(), strict=True))


@kernel_without_allocation
def _encode_in_part(rows, surround, pre_tokenizer, cache, tokens, out, parts):
    """Finds tokens as `encode_rows` does, looks them up if `parts` >= 1, and writes their ids if >= 2."""
    row, position, used = 0, -1, out.used
    while row < len(rows.starts):
        done = row
        row, position, count = scan_tokens(rows, row, position, pre_tokenizer, tokens)
        if parts >= 1:
            misses, _, _ = look_up(tokens, count, cache)
            for miss in range(np.uint64(misses)):
                cache.packed_ids[np.uint64(2) * cache.missed[miss] + np.uint64(1)] = np.uint64(0)
        if parts >= 2:
            used = _put_rows(
                cache, out.ids, tokens.row_tokens, done, row, count, surround,
                IdRows(out.ids, used, out.offsets),
            )  # fmt: skip


def measure_limits(scratch: Path, scale: Scale) -> dict[str, Any]:
    """Measures the machine, and `build` on English and Chinese text.

    Returns:
        machine: the limits, in nanoseconds for a byte or for a look-up.
        texts: for each corpus its bytes and its phases. A phase has its whole time, the (time, limit) of each
            stage, and the rest, in nanoseconds for a byte of text. A limit is 0 if it is not known.
    """
    limits = machine_limits(scratch, scale.limits_bytes)
    corpora = Corpora(scratch, scale.large_bytes, scale.generated_bytes)
    texts = {}
    for name in (ENGLISH, CHINESE):
        path = corpora.path(name)
        phases = _phases(path, corpora.small(name), scratch / 'limits.build', scale, limits)
        texts[name] = {'bytes': path.stat().st_size, 'phases': phases}
    return {'machine': limits, 'texts': texts}


def _phases(
    text: Path, small: Path, output: Path, scale: Scale, limits: Limits
) -> dict[str, dict[str, Any]]:
    _build(small, output, scale.large_vocabulary)  # loads kernels, which a process does once
    start_up, timer = StageTimer(), StageTimer()
    with start_up.timing():
        _build(small, output, scale.large_vocabulary)
    with timer.timing():
        manifest = _build(text, output, scale.large_vocabulary)
    units = _units(output, manifest)
    parts = encoding_parts(text.read_bytes(), str(next(output.glob('vocab.*'))))
    nanoseconds = 1e9 / units['text']
    phases = {}
    for phase in ('count', 'learn', 'encode'):
        whole = timer.phases[phase] - start_up.phases[phase]
        if phase == 'encode':
            whole -= timer.phases['sample'] - start_up.phases['sample']
        rest, stages = whole, {}
        for line in [each for each in timer.stages if each[0] == phase]:
            seconds = timer.stages[line] - start_up.stages[line]
            if seconds < _LEAST_SHARE * timer.phases[phase]:
                continue
            rest -= seconds
            units['arrays'] = timer.array_bytes[line]
            stage = line[1]
            least = sum(limits[limit] * units.get(unit, 0) for limit, unit in stage.needs)
            stages[stage.name] = seconds * nanoseconds, least / units['text']
            if stage.name == 'text to ids':
                stages |= {f'- {part}': (each * nanoseconds, 0) for part, each in parts.items()}
        phases[phase] = {'whole': whole * nanoseconds, 'stages': stages, 'rest': rest * nanoseconds}
    return phases


def _units(dataset: Path, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Returns the amounts that limits are multiplied by: tokens, rows, and bytes of everything else."""
    counted = json.loads((dataset / 'counts' / 'tokbeam.json').read_text())
    rows, shards = (sum(file[each] for file in manifest['files']) for each in ('rows', 'bytes'))
    indexes = [dataset / file['name'] for file in manifest['index'] if 'rows' in file]
    parsed = [parse_index(np.frombuffer(path.read_bytes(), np.uint8)) for path in indexes]
    return {
        'text': sum(file['bytes'] for file in manifest['inputs']),
        'tokens': counted['tokens'],
        'ids': 4 * sum(int(index.lengths.sum()) for index in parsed if index),
        'rows': rows,
        'keys': 8 * rows,
        'records': shards,
        'shards': shards,
        'runs': shards + 20 * rows,
        'merged runs': shards + 20 * rows,
        'indexes': sum(file['bytes'] for file in manifest['index']),
    }


def _build(text: Path, output: Path, size: int) -> dict[str, Any]:
    """Builds a dataset in this process; returns its manifest."""
    shutil.rmtree(output, ignore_errors=True)
    arguments = ['build', '--text', text, '--name', 'limits', '--vocab-size', size, '--shards', 10]
    arguments += ['--workers', 1, '--progress', 'none', '--output', output]
    if main([*map(str, arguments)]):
        raise RuntimeError('the command failed; its message is above')
    return json.loads((output / 'tokbeam.json').read_text())
