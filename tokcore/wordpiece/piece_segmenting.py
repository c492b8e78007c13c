"""The kernels of WordPiece: a word is cut from its left into the longest pieces, or is unknown."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.ragged_bytes import grown
from tokcore.encoding.model import NO_ROOM, larger_workspace, segment_tokens
from tokcore.wordpiece.piece_trie import REST_ROOT, WORD_ROOT, PieceTrie, longest_piece

NO_UNKNOWN = -1
"""The unknown token's id where a vocabulary has none."""

_0, _1 = np.uint64(0), np.uint64(1)
_CONTINUED, _CONTINUATION = np.uint8(0xC0), np.uint8(0x80)


class WordPieces(NamedTuple):
    """The state: what segmenting reads of a vocabulary; read-only, so that threads can share it."""

    trie: PieceTrie
    unknown: int
    max_word_length: int  # code points; longer words are unknown


class PieceIds(NamedTuple):
    """The workspace: ids[id_bounds[m]:id_bounds[m + 1]] are the m-th word's."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64[words + 1]


@kernel_without_allocation
def _is_longer(text, start, end, most):
    """Whether text[start:end] has more than so many code points."""
    if end - start <= np.uint64(most):
        return False
    characters = 0
    for place in range(start, end):
        characters += text[place] & _CONTINUED != _CONTINUATION
        if characters > most:
            return True
    return False


@kernel_without_allocation
def segment_word(text, start, end, model, ids, used):
    """Puts the ids of the word text[start:end] behind the first so many, places in uint64.

    Returns how many they are then and, where the word is unknown and no id stands for that, how
    many bytes of it are left, else 0. There is room for an id a byte and one more.
    """
    place, count = start, used
    if not _is_longer(text, start, end, model.max_word_length):
        root = WORD_ROOT
        while place < end:
            cell, stop = longest_piece(text, place, end, root, model.trie)
            if stop == place:
                break
            ids[count] = model.trie.ids[cell]
            count += _1
            place = stop
            root = REST_ROOT
    if place < end:
        if model.unknown == NO_UNKNOWN:
            return used, np.int64(end - place)
        ids[used] = model.unknown
        count = used + _1
    return count, np.int64(0)


@segment_tokens.register(WordPieces)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says; what cannot be spelt are `left` bytes of a word."""
    if len(work.ids) < missed.nbytes + missed.count:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = used
    for miss in range(missed.count):
        token = missed.numbers[miss]
        used, left = segment_word(
            tokens.text, tokens.starts[token], tokens.ends[token], model, work.ids, used
        )
        if left:
            return miss, left
        work.id_bounds[miss + 1] = used
    return 0, 0


@larger_workspace.register(WordPieces)
@kernel
def larger_ids(missed, model, work):
    """An id a byte and one for each; room that is not written to takes no memory."""
    return PieceIds(grown(work.ids, 0, missed.nbytes + missed.count), work.id_bounds)
