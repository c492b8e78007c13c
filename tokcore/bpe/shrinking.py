"""A smaller vocabulary of byte-level BPE, with which the tokens of a corpus keep their pieces.

The tokens are encoded, and the entries that they become are kept. So are the two parts that the last merge
of each joins, and the parts of these, unless only whole tokens are the entry and need no merges
(`ignore_merges`). Bytes and added tokens stay, so that any text has ids. The merges between kept entries
stay in their order.

No token changes: the merge that is made next is the one of lowest rank, the leftmost of several. A merge
that was made in a token is kept, and one that is left out was not the lowest at any step, so the same
merges are made, and at the end none is possible, as before. A token that is an entry
stays one, and no token becomes one.
"""

import dataclasses
import io
import json
import logging
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tokcore.bpe.extension import encoded_tokens
from tokcore.bpe.vocabulary import BpeVocabulary, parse_parts
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.byte_level import CHARACTER_TO_BYTE

_LOGGER = logging.getLogger(__name__)

_NEVER = 1 << 31
"""Above all ranks."""

_MOST_BYTES = 1 << 62


def shrink(table: TokenTable, old: BpeVocabulary, size: int | None) -> BpeVocabulary:
    """Returns a smaller vocabulary; warns of the share of text whose pieces change.

    Args:
        table: distinct tokens, cut by the pattern of the vocabulary, with their counts.
        old: is byte-level.
        size: the number of entries; None: the fewest with which no token changes. Entries stay by how
            often text makes them, as pieces or on the way to them; of equal ones the shorter, then
            those of smaller ids.

    Raises:
        InputError: there cannot be so many entries.
        OverflowError: the text has more than 2^62 bytes.
    """
    text_bytes = table.counts * np.diff(table.offsets).astype(float)
    if text_bytes.sum() > _MOST_BYTES:
        raise OverflowError('the text of the counts has more than 2^62 bytes')
    before = encoded_tokens(table, old)
    pieces = np.diff(before.offsets)
    used = np.zeros((2, old.vocab_size), np.int64)
    need_merges = (pieces > 1) | (not old.rules.ignore_merges)
    uses = np.repeat([need_merges, np.maximum(table.counts, 1)], pieces, axis=1)
    np.add.at(used, (uses[0], before.ids), uses[1])
    smaller, new_ids = _with_entries(old, _kept_entries(used.tolist(), old, size))
    after = encoded_tokens(table, smaller)
    is_changed = np.diff(after.offsets) != pieces
    is_compared = np.repeat(~is_changed, pieces)
    differs = (
        new_ids[before.ids[is_compared]]
        != after.ids[np.repeat(~is_changed, np.diff(after.offsets))]
    )
    is_changed[np.repeat(np.arange(len(table)), pieces)[is_compared][differs]] = True
    if is_changed.any():
        if size is None:
            raise RuntimeError('a token would change its pieces; please report this')
        share = text_bytes[is_changed].sum() / max(text_bytes.sum(), 1)
        _LOGGER.warning('%.3f%% of the text is in tokens whose pieces change', 100 * share)
    return smaller


def id_maps(old: BpeVocabulary, smaller: BpeVocabulary) -> tuple[bytes, bytes]:
    """Returns the old and the new id of each entry, int64[entries, 2], as .npy and as JSON."""
    old_ids = {piece: id_ for id_, piece in enumerate(old.pieces)}
    pairs = [[old_ids[piece], id_] for id_, piece in enumerate(smaller.pieces)]
    array = io.BytesIO()
    np.save(array, np.array(pairs, np.int64))
    return array.getvalue(), json.dumps(pairs).encode()


def last_merge(
    symbols: Sequence[str], rank_of: Callable[[str, str], int | None]
) -> tuple[str, str] | None:
    """Returns the two parts of an entry that are merged into it; None if merges end before.

    They are the same in every text: as long as no merge has crossed the ends of the entry's bytes, the
    merges within them are those made in them alone.
    """
    parts = [*symbols]
    while len(parts) > 1:
        ranks = [
            _NEVER if (rank := rank_of(*pair)) is None else rank for pair in zip(parts, parts[1:])
        ]
        first = ranks.index(min(ranks))
        if ranks[first] == _NEVER:
            break
        if len(parts) == 2:
            return parts[0], parts[1]
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    return None


def _kept_entries(uses: list[list[int]], old: BpeVocabulary, size: int | None) -> list[str]:
    """Returns the entries to keep.

    Args:
        uses: by id, how often each entry is a token that needs no merges, and how often it is another
            piece, to which is added how often merges make it on the way.
        old: the vocabulary.
        size: as of `shrink`.
    """
    whole, made = uses
    ids, ranks = old.entries, {pair: rank for rank, pair in enumerate(old.merges)}
    for entry in sorted(ids, key=len, reverse=True):
        if count := made[ids[entry]]:
            for part in last_merge(entry, lambda *pair: ranks.get(pair)) or ():
                made[ids[part]] += count
    used = [*map(operator.add, whole, made)]
    added = {token.content for token in old.added}
    fixed = ids.keys() & {*CHARACTER_TO_BYTE, old.rules.unk_token, *added}
    if size is None:
        return [entry for entry in ids if entry in fixed or used[ids[entry]]]
    least, most = len(fixed | added), len(ids.keys() | added)
    if not least <= size <= most:
        raise InputError(
            f'--vocab-size {size} is not from {least}, the bytes and added tokens, which stay, to the {most} '
            'entries that there are; give another, or leave it out'
        )
    # No entry that merges make comes before its parts: they are made as often, and are shorter.
    others = sorted(
        ids.keys() - fixed, key=lambda entry: (-used[ids[entry]], len(entry), ids[entry])
    )
    return [*fixed, *others[: size - least]]


def _with_entries(old: BpeVocabulary, kept: Collection[str]) -> tuple[BpeVocabulary, np.ndarray]:
    """Returns a vocabulary of some entries, in their order, and by old id the new one, -1 if it is gone."""
    entries = {entry: id_ for id_, entry in enumerate(sorted(kept, key=old.entries.__getitem__))}
    numbers = dict(entries)
    for token in old.added:  # readers number these after the entries, unless they are entries
        numbers.setdefault(token.content, len(numbers))
    by_id = {id_: numbers[piece] for id_, piece in enumerate(old.pieces) if piece in numbers}
    components = {**old.parts.components}
    components['post_processor'] = _renumbered(components.get('post_processor'), by_id)
    smaller = BpeVocabulary(
        entries,
        tuple(pair for pair in old.merges if {*pair, ''.join(pair)} <= entries.keys()),
        tuple(dataclasses.replace(token, id=numbers[token.content]) for token in old.added),
        parse_parts(components, 'the vocabulary'),
        old.rules,
    )
    return smaller, np.array([by_id.get(id_, -1) for id_ in range(old.vocab_size)], np.int64)


def _renumbered(part: Any, by_id: Mapping[int, int]) -> Any:
    """Returns a post-processor, or a part of one, with other ids."""
    match part:
        case {'ids': [*ids]}:
            return {**part, 'ids': [by_id.get(id_, id_) for id_ in ids]}
        case [str(token), int(id_)]:
            return [token, by_id.get(id_, id_)]
        case {**members}:
            return {name: _renumbered(member, by_id) for name, member in members.items()}
        case [*parts]:
            return [_renumbered(each, by_id) for each in parts]
    return part
