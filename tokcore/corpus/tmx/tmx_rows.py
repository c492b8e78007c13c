"""Blocks of translation units to rows: each unit is one, is empty, or a reject."""

from __future__ import annotations

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.rows import TOO_LONG, Reject, Rows
from tokcore.corpus.tmx.segment_text import decode_segments
from tokcore.corpus.tmx.units import list_units
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side

UNDEFINED_ENTITY = 'undefined_entity'

_LEAST_UNIT = 5  # bytes of `<tu/>`


def unit_rows(
    data: bytes,
    offset: int,
    languages: tuple[str, ...],
    drops_codes: bool,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block of whole units, with a side for each language.

    A unit without one of the languages, or with a blank segment, is empty.

    Args:
        data: of a block as `tmx_reading` makes them.
        offset: of it in the file's text.
        languages: wanted ones, in lower case.
        drops_codes: whether what inline elements hold of a native format is left out.
        normalizer: what makes text of segments.
        max_line_bytes: a longer unit is a reject.
    """
    text = np.frombuffer(data, np.uint8)
    packed = np.zeros((len(languages), max(map(len, languages))), np.uint8)
    for number, each in enumerate(languages):
        packed[number, : len(each)] = np.frombuffer(each.encode(), np.uint8)
    sizes = np.array([*map(len, languages)], np.int64)
    most = len(data) // _LEAST_UNIT + 1  # what is not written costs no memory
    units = np.empty((most, 2), np.int64)
    segments = np.empty((most, len(languages), 2), np.int64)
    count = list_units(text, read_only(packed), read_only(sizes), units, segments)
    units, segments = units[:count], segments[:count]
    # How well a variant fits is in the lowest bits.
    segments[:, :, 0] >>= 3
    too_long = np.flatnonzero(units[:, 1] - units[:, 0] > max_line_bytes)
    segments[too_long] = -1
    is_kept = np.ones(count, bool)
    bad = dict.fromkeys(too_long.tolist(), TOO_LONG)
    sides = []
    for number in range(len(languages)):
        given, undefined = _texts(text, np.ascontiguousarray(segments[:, number]), drops_codes)
        bad |= dict.fromkeys(np.flatnonzero(undefined >= 0).tolist(), UNDEFINED_ENTITY)
        side = normalizer.apply(given).side
        sides.append(side)
        is_kept &= side.ends > side.starts
    is_kept[list(bad)] = False
    kept = np.flatnonzero(is_kept)
    return Rows(
        tuple(Side(each.text, each.starts[kept], each.ends[kept]) for each in sides),
        offset,
        units[kept, 0],
        count,
        count - len(kept) - len(bad),
        tuple(
            _reject(reason, offset, data, *units[row].tolist()) for row, reason in sorted(bad.items())
        ),
    )


def _texts(text: np.ndarray, segments: np.ndarray, drops_codes: bool) -> tuple[Side, np.ndarray]:
    count = len(segments)
    found = np.empty(count + int((segments[:, 1] - segments[:, 0]).sum()), np.uint8)
    starts, ends, undefined = (np.empty(count, np.int64) for _ in range(3))
    decode_segments(text, segments, drops_codes, found, starts, ends, undefined)
    return Side(*map(read_only, (found, starts, ends))), undefined


def _reject(reason: str, offset: int, data: bytes, start: int, end: int) -> Reject:
    at = offset + start
    if reason == TOO_LONG:
        return Reject(reason, 0, at, at, data[start : start + BEGINNING_BYTES], end - start)
    return Reject(reason, 0, at, at, data[start:end])
