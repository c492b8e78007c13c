"""A smaller vocabulary of byte-level BPE, with which the tokens of a corpus keep their pieces.

The tokens are encoded, and the entries that they become are kept, with the parts of each entry that its
last merge joins, and the parts of these; and with bytes and added tokens, so that any text has ids. All
merges between kept entries stay, in their order.

Why no token changes: its merges are those of the lowest rank among all that are possible, one after
another. All that were made in it are kept. A merge that is left out was possible and not made, or not
possible; without it, the lowest rank is the same at each step, and at the end no merge is possible, as
before. A token that is an entry (`ignore_merges`) is kept, and none becomes an entry.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tokcore.bpe.extension import encoded_tokens
from tokcore.bpe.files import parse_bpe_file
from tokcore.bpe.last_merges import last_merge
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.vocabulary import Template
from tokcore.errors import InputError
from tokcore.text.byte_level import CHARACTER_TO_BYTE

_OTHER_FILES = {
    'ranks': 'tokcore.foreign_tokenizers.files:ranks_with_merges',
}
"""Functions that read files of other tools, as strings: `bpe` works without them."""

_MOST_BYTES = 1 << 62

ID_MAP_ENDINGS = ('.ids.npy', '.ids.json')
"""The ends of the names of the files with the old and the new id of each entry."""


def shrink(
    table: TokenTable, old: BpeVocabulary, size: int | None
) -> tuple[BpeVocabulary, np.ndarray]:
    """Returns a smaller vocabulary, and whether each token of a table changes its pieces (bool[tokens]).

    Args:
        table: distinct tokens, cut by the pattern of the vocabulary, with their counts.
        old: see `read_shrinkable`.
        size: the number of entries; None: the fewest with which no token changes. Entries stay by how
            often text makes them, as pieces or on the way to them; of equal ones those of smaller ids.

    Raises:
        InputError: the bytes and added tokens alone are more, or all entries are fewer.
        OverflowError: the text has more than 2^62 bytes.
    """
    if _text_bytes(table) > _MOST_BYTES:
        raise OverflowError('the text of the counts has more than 2^62 bytes')
    encoded = encoded_tokens(table, old)
    sizes = np.diff(encoded.offsets)
    used = np.zeros(old.vocab_size, np.int64)
    np.add.at(used, encoded.ids, np.repeat(np.maximum(table.counts, 1), sizes))
    smaller, new_ids = _with_entries(old, _kept_entries(used.tolist(), old, size))
    again = encoded_tokens(table, smaller)
    is_changed = np.diff(again.offsets) != sizes
    is_compared = ~is_changed
    differs = (
        new_ids[encoded.ids[np.repeat(is_compared, sizes)]]
        != again.ids[np.repeat(is_compared, np.diff(again.offsets))]
    )
    is_changed[np.repeat(np.flatnonzero(is_compared), sizes[is_compared])[differs]] = True
    if size is None and is_changed.any():
        raise RuntimeError('a token changes its pieces, which cannot be; please report it')
    return smaller, is_changed


def _text_bytes(table: TokenTable) -> float:
    return float(np.dot(table.counts.astype(float), np.diff(table.offsets)))


def share_of_text(table: TokenTable, are_tokens: np.ndarray) -> float:
    """Returns how much of the text's bytes are in some of its tokens (bool[tokens]), from 0 to 1."""
    return _text_bytes(table.pick(are_tokens.nonzero()[0])) / max(_text_bytes(table), 1.0)


def _kept_entries(used: list[int], old: BpeVocabulary, size: int | None) -> list[str]:
    """Returns the entries to keep.

    Args:
        used: by id, how often text has each as a piece; gets how often text makes each at all.
        old: the vocabulary.
        size: as of `shrink`.
    """
    ids, ranks = old.entries, {pair: rank for rank, pair in enumerate(old.merges)}
    added = {token.content for token in old.added}
    fixed = {*CHARACTER_TO_BYTE, old.rules.unk_token, *added}
    by_length = sorted(ids, key=len)
    parts: dict[str, tuple[str, str]] = {}
    for entry in reversed(by_length):
        count = used[ids[entry]]
        pair = last_merge(entry, lambda *pair: ranks.get(pair)) if count or size else None
        if pair is not None:
            parts[entry] = pair
            for part in pair:
                used[ids[part]] += count
    if size is None:
        return [entry for entry in ids if entry in fixed or used[ids[entry]]]
    least, all_entries = len(fixed & ids.keys() | added), len(ids.keys() | added)
    if not least <= size < all_entries:
        raise InputError(
            f'--vocab-size {size} is not between the {least} bytes and special tokens, which stay, and the '
            f'{all_entries} entries of the vocabulary; give another, or leave it out'
        )
    # An entry never comes before its parts: text makes these as often, and they are shorter.
    latest: dict[str, int] = {}
    for entry in by_length:
        latest[entry] = max(ids[entry], *map(latest.__getitem__, parts.get(entry, ())), 0)
    others = sorted(
        ids.keys() - fixed, key=lambda entry: (-used[ids[entry]], latest[entry], len(entry))
    )
    return [*(fixed & ids.keys()), *others[: size - least]]


def _with_entries(old: BpeVocabulary, kept: Collection[str]) -> tuple[BpeVocabulary, np.ndarray]:
    """Returns a vocabulary with some entries, in their order, and the new id of each old one, or -1."""
    entries = {entry: id_ for id_, entry in enumerate(sorted(kept, key=old.entries.__getitem__))}
    numbers = dict(
        entries
    )  # readers number added tokens after the entries, unless they are entries
    for token in old.added:
        numbers.setdefault(token.content, len(numbers))
    new_ids = np.full(old.vocab_size, -1, np.int64)
    for content, id_ in numbers.items():
        new_ids[old.id_of(content)] = id_
    by_id = {int(id_): int(new_ids[id_]) for id_ in np.flatnonzero(new_ids >= 0)}
    try:
        components = {**old.parts.components}
        components['post_processor'] = _renumbered(components.get('post_processor'), by_id)
        before, after = (tuple(by_id[id_] for id_ in side) for side in old.parts.template)
    except KeyError as error:
        raise InputError(
            f'the post-processor of the vocabulary has the id {error}, which no special token has; give '
            'a vocabulary without it'
        ) from None
    smaller = BpeVocabulary(
        entries,
        tuple(
            pair for pair in old.merges if entries.keys() >= {*pair} and ''.join(pair) in entries
        ),
        tuple(dataclasses.replace(token, id=numbers[token.content]) for token in old.added),
        dataclasses.replace(old.parts, components=components, template=Template(before, after)),
        old.rules,
    )
    return smaller, new_ids


def _renumbered(part: Any, by_id: Mapping[int, int]) -> Any:
    """Returns a post-processor, or a part of one, with other ids."""
    match part:
        case {'ids': [*ids]}:
            return {**part, 'ids': [by_id[id_] for id_ in ids]}
        case [str(token), int(id_)]:
            return [token, by_id[id_]]
        case dict():
            return {name: _renumbered(value, by_id) for name, value in part.items()}
        case list():
            return [_renumbered(value, by_id) for value in part]
    return part


def id_map_files(old: BpeVocabulary, smaller: BpeVocabulary) -> dict[str, bytes]:
    """Returns the files with the old and the new id of each entry, by the ends of their names."""
    pairs = [[old.id_of(piece), id_] for id_, piece in enumerate(smaller.pieces)]
    file = io.BytesIO()
    np.save(file, np.array(pairs, np.int64))
    return dict(zip(ID_MAP_ENDINGS, (file.getvalue(), json.dumps(pairs).encode()), strict=True))


@functools.lru_cache(maxsize=1)
def read_shrinkable(path: str, data: bytes, pattern: str | None) -> BpeVocabulary:
    """Returns the vocabulary of a file, ranks with merges.

    Args:
        path: of the file.
        data: the file.
        pattern: cuts text for ranks; None: it is not known.

    Raises:
        InputError: it is not byte-level BPE with a pattern that is known.
    """
    vocabulary = None
    for name in _OTHER_FILES.values():
        module, _, function = name.partition(':')
        vocabulary = getattr(importlib.import_module(module), function)(data, path, pattern)
    vocabulary = vocabulary or parse_bpe_file(data, path)
    kind = None
    if not isinstance(vocabulary, BpeVocabulary):
        kind = 'codes, which have no ids'
    elif not vocabulary.parts.byte_level:
        kind = 'byte pair encoding of characters'
    elif vocabulary.rules.byte_fallback:
        kind = 'byte pair encoding with byte_fallback'
    if kind is not None:
        raise InputError(f'{path} has {kind}; --shrink is for byte-level BPE')
    return vocabulary
