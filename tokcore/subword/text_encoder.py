"""Tensor2Tensor's SubwordTextEncoder: text to ids of an invertible subword vocabulary, and back.

Text is split into tokens, each token is escaped, and the escaped token is segmented greedily from
the left into the longest subtokens; decoding inverts all of it. Long tokens are segmented in
windows, since no segment depends on more text than the longest subtoken has. A vocabulary file has
one subtoken per line in single quotes; the line number is the id. Nothing is escaped inside the
quotes, so a subtoken with a line end cannot be written. (Tensor2Tensor writes it, and every later
id is then wrong.)
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.kernels import MissedTokens
from tokcore.encoding.tokenizer import Tokenizer, piece_spans, token_spans
from tokcore.encoding.vocabulary import SpecialIds, read_vocabulary_file, without_mark
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only, read_only_state
from tokcore.subword.trie_kernels import (
    MAX_GROWTH,
    HashedTrie,
    SubwordState,
    TrieWalk,
    build_trie,
    escape_to_code_points,
    probe_bigrams,
    segment_longest_match,
)
from tokcore.text.alignment import Span
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.text.t2t import (
    ESCAPE_CHARACTERS,
    T2TPreTokenizer,
    alphabet_of,
    detokenize,
    escape_token,
    tokenize,
    unescape_token,
)
from tokcore.text.unicode import CODE_POINTS

_PAD_ID = 0
EOS_ID = 1
ROLES = {'<pad>': _PAD_ID, '<EOS>': EOS_ID}

UNSTORABLE = '\r'
"""No subtoken of a file can contain this: readers drop it, as Tensor2Tensor does."""

_REMEDY = 'give a subword vocabulary as written by tokbeam or Tensor2Tensor'

WINDOW_BYTES = 64 << 10
"""Bytes of a token that are segmented at a time.

The arrays for it take up to a hundred times as much memory, which still fits most processors'
caches; with half of it, twice as many calls would pass through the interpreter."""

_END_OF_ESCAPE = re.compile(r'u|[0-9]*;')

_SHOWN = 60  # characters of a token in an error


class SubwordTextEncoder(Tokenizer):
    """Encodes and decodes as Tensor2Tensor 1.15.7 does with the same vocabulary.

    Examples:
        >>> tokcore.SubwordTextEncoder(['<pad>_', '<EOS>_', 'the_', 'c', 'at_']).encode('the cat')
        [2, 3, 4]
    """

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id, reserved ones (`<pad>_`, `<EOS>_`, ...) included.

        Of equal subtokens, `encode` gives the last one's id; an empty one only takes up an id.
        """
        self._subtokens = tuple(subtokens)
        self._encoder = SharedEncoder(self.row_encoder)

    @property
    def vocabulary(self) -> SubwordTextEncoder:  # type: ignore[override]  # others have it apart
        """Itself: it is its own vocabulary."""
        return self

    @property
    def special_ids(self) -> SpecialIds:
        """The ids of padding and of the end of a row."""
        return SpecialIds(pad=_PAD_ID, end=EOS_ID)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a reserved token by its name, `<EOS>`, or None if there is none."""
        if token in ROLES:
            return ROLES[token]
        escaped = escape_token(token, alphabet_of([token]))
        return self._subtokens.index(escaped) if escaped in self._subtokens else None

    def dump(self) -> bytes:
        """Returns the file that Tensor2Tensor's `store_to_file` writes.

        Raises ValueError for subtokens that the format cannot hold.
        """
        return dump_vocabulary(self._subtokens)

    @classmethod
    def load(cls, path: str | os.PathLike) -> SubwordTextEncoder:
        """Reads a vocabulary file, in the format of `parse_vocabulary`.

        Raises InputError if the file cannot be read or is not a vocabulary.
        """
        return cls(parse_vocabulary(read_vocabulary_file(path), os.fspath(path)))

    @property
    def subtokens(self) -> tuple[str, ...]:
        """The subtokens by id."""
        return self._subtokens

    @property
    def pieces(self) -> tuple[str, ...]:
        """The subtokens by id: the name that all schemes share."""
        return self._subtokens

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the result of `decode` in UTF-8, a lone surrogate in three bytes."""
        return self.decode(ids).encode('utf-8', 'surrogatepass')

    @property
    def vocab_size(self) -> int:
        """The number of ids, those of duplicates and empty subtokens included."""
        return len(self._subtokens)

    @functools.cached_property
    def model(self) -> _SubwordModel:
        """The vocabulary's model for `RowEncoder`; threads can share it."""
        return _SubwordModel(self._subtokens)

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(T2TPreTokenizer(), self.model, cache_bytes)

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        units: list[Span] = []  # of each character of escaped tokens
        for token, start in token_spans(text, tokenize(text)):
            for index, character in enumerate(token, start):
                escaped = escape_token(character, self._alphabet)[:-1]
                units += [(index, index + 1)] * len(escaped)
            units.append((start + len(token),) * 2)  # the underscore at the end
        return piece_spans((len(self._subtokens[id_]) for id_ in ids), units)

    @functools.cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset(alphabet_of(self._subtokens))

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; `strip_extraneous` first drops padding and EOS at the end.

        Elsewhere `<pad>` and `<EOS>` appear as text.

        Raises:
            InputError: the vocabulary does not have one of the ids, which Tensor2Tensor ignores.
        """
        ids = list(ids)
        while strip_extraneous and ids and ids[-1] in self.special_ids.at_end:
            ids.pop()
        escaped = ''.join(self.decode_list(ids)).split('_')
        return detokenize(filter(None, map(unescape_token, escaped)))

    def decode_list(self, ids: Iterable[int]) -> list[str]:
        """Returns the subtoken of each id; raises as `decode`."""
        return [self._subtokens[id_] for id_ in self._known(ids)]


def parse_vocabulary(data: bytes, name: str) -> list[str]:
    r"""Returns the subtokens of a vocabulary file, by id; `name` stands for it in errors.

    Read as by Tensor2Tensor: lines end at `\n`; every `\r`, trailing whitespace, and then one pair
    of single or double quotes are dropped. Every line has an id, even a blank one. A byte order mark
    at the start, which would be a part of `<pad>_`, is dropped.

    Raises InputError if the file is empty, not UTF-8, or does not begin with `<pad>` and `<EOS>`
    (or `<pad>_` and `<EOS>_`, as Tensor2Tensor writes them since July 2018).
    """
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
    data = without_mark(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise InputError(
            f'{name}: line {line} is not UTF-8 at byte offset {error.start}; {_REMEDY}'
        ) from None
    lines = text.replace('\r', '').removesuffix('\n').split('\n')
    subtokens = [_unquoted(line.rstrip()) for line in lines]
    _check_reserved(subtokens, name)
    return subtokens


def dump_vocabulary(subtokens: Iterable[str]) -> bytes:
    r"""Returns the file's bytes: `['<pad>_', 'a']` gives `b"'<pad>_'\n'a'\n"`.

    `'\n'` gives `b"''\n"`. Raises ValueError for any other subtoken with `\n`, `\r` or a surrogate,
    which could not be read back.
    """
    lines = []
    for id_, subtoken in enumerate(subtokens):
        if subtoken == '\n':
            subtoken = ''
        if '\n' in subtoken or '\r' in subtoken:
            raise ValueError(
                f'subtoken {id_}, {subtoken!r}, has a line end, which a vocabulary file cannot hold'
            )
        try:
            lines.append(b"'%b'\n" % subtoken.encode())
        except UnicodeEncodeError as error:
            raise ValueError(
                f'subtoken {id_}, {subtoken!r}, has a lone surrogate, which UTF-8 cannot hold'
            ) from error
    return b''.join(lines)


def _unquoted(line: str) -> str:
    # A line of one quote is '', as in Tensor2Tensor.
    return line[1:-1] if line[:1] in ("'", '"') and line[0] == line[-1] else line


def _check_reserved(subtokens: list[str], name: str) -> None:
    for id_, reserved in enumerate(('<pad>', '<EOS>')):
        if id_ == len(subtokens):
            raise InputError(
                f'{name}: the file ends before line {id_ + 1}, which must be {reserved!r}; '
                f'{_REMEDY}'
            )
        subtoken = subtokens[id_]
        if subtoken.removesuffix('_').lower() != reserved.lower():
            # Another kind of file may have very long lines.
            shown = subtoken if len(subtoken) <= 40 else subtoken[:40] + '…'
            raise InputError(
                f'{name}: line {id_ + 1} is {shown!r} where a vocabulary has {reserved!r}; '
                f'{_REMEDY}'
            )


class _SubwordModel:
    """A `Model` that segments escaped tokens greedily from the left into the longest subtokens."""

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id. Of equal ones the last gives the id, empty ones are unused."""
        self._subtokens = tuple(subtokens)

    @property
    def size(self) -> int:
        return len(self._subtokens)

    @functools.cached_property
    def state(self) -> SubwordState:
        """The vocabulary for the kernels, built at first use."""
        # Any str can be encoded, lone surrogates too.
        joined = ''.join(self._subtokens).encode('utf-32-le', 'surrogatepass')
        codes = np.frombuffer(joined, '<u4')
        offsets = row_offsets([len(subtoken) for subtoken in self._subtokens])
        trie = HashedTrie(*map(read_only, build_trie(codes, read_only(offsets))))

        alphabet = np.zeros(CODE_POINTS, np.uint8)
        alphabet[codes] = 1
        alphabet[[ord(character) for character in ESCAPE_CHARACTERS]] = 1
        # Always escaped, see `escape_token`.
        alphabet[[ord(character) for character in '\\_\n']] = 0
        bits = np.packbits(alphabet, bitorder='little').view(np.uint64)
        return SubwordState(trie, read_only(bits))

    def workspace(self, tokens: int) -> TrieWalk:
        bounds, id_bounds = (np.empty(tokens + 1, np.uint64) for _ in range(2))
        matches, deeper = (np.empty(tokens, np.uint64) for _ in range(2))
        codes, ids = np.empty(tokens, np.uint32), np.empty(tokens, np.int32)
        return TrieWalk(codes, bounds, matches, deeper, ids, id_bounds)

    def describe_failure(self, token: str, failure: int) -> str:
        escaped = escape_token(token, alphabet_of(self._subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-failure:]!r}, '
            f'the rest of the token {token!r}; the vocabulary lacks characters of its own '
            'alphabet, so learn another one'
        )

    @functools.cached_property
    def _lengths(self) -> np.ndarray:
        return np.array([len(subtoken) for subtoken in self._subtokens], np.int64)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        """Yields the ids of a token in windows, int32[...].

        Raises ValueError naming the rest of the token if no subtoken begins it.
        """
        text, end = part.text, part.end
        longest = int(self._lengths.max(initial=0))
        window = max(WINDOW_BYTES, longest)
        codes = np.empty(0, np.uint32)  # escaped and not yet segmented
        stop = part.start
        while stop < end:
            begin, stop = stop, _character_start(text, min(stop + window, end), end)
            codes = np.concatenate([codes, self._escape(text, begin, stop, stop == end)])
            # Segments near the end of the window may change with the text that follows.
            stable = len(codes) - (0 if stop == end else longest)
            ids, segmented = self._segment_codes(codes, stable, end - part.start)
            yield ids
            codes = codes[segmented:]

    def _escape(self, text: np.ndarray, start: int, end: int, is_last: bool) -> np.ndarray:
        codes = np.empty(MAX_GROWTH * (end - start) + 1, np.uint32)
        starts, ends, number = (np.array([value], np.uint64) for value in (start, end, 0))
        token = ScannedTokens(text, starts, ends, np.empty(0, np.int64))
        bounds = np.empty(2, np.uint64)
        missed = MissedTokens(number, 1, end - start)
        escape_to_code_points(token, missed, read_only(self.state.alphabet), codes, bounds)
        # The kernel appends the underscore of a token's end to every window.
        return codes[: int(bounds[1]) - (not is_last)]

    def _segment_codes(
        self, codes: np.ndarray, stable: int, token_bytes: int
    ) -> tuple[np.ndarray, int]:
        """Returns the ids of the segments that begin before `stable`, and where the next begins."""
        if stable <= 0:
            return np.empty(0, np.int32), 0
        size = len(codes)
        matches, deeper = np.empty(size, np.uint64), np.empty(size, np.uint64)
        ids, id_bounds = np.empty(size, np.int32), np.empty(2, np.uint64)
        codes, bounds = np.append(codes, np.uint32(0)), np.array([0, size], np.uint64)
        walk = TrieWalk(codes, bounds, matches, deeper, ids, id_bounds)
        trie = read_only_state(self.state.trie)
        probe_bigrams(walk, size, trie)
        end, remaining = size, size
        while remaining:
            bounds[1] = end
            _, remaining = segment_longest_match(walk, 1, trie)
            end -= remaining
            if remaining and end < stable:
                rest = codes[end : min(size, end + _SHOWN)].astype('<u4').tobytes()
                shown = rest.decode('utf-32-le', 'surrogatepass')
                raise ValueError(
                    f'no subtoken of the vocabulary begins {shown!r}, in a token of {token_bytes} '
                    'bytes; the vocabulary lacks characters of its own alphabet, so learn another '
                    'one'
                )
        ids = ids[: int(id_bounds[1])]
        ends = np.cumsum(self._lengths[ids])
        segments = min(len(ids), int(np.searchsorted(ends, stable)) + 1)
        return ids[:segments], int(ends[segments - 1])


def _character_start(text: np.ndarray, position: int, end: int) -> int:
    """Returns the start of the character at a position; `end` if the position is there."""
    while position < end and text[position] & 0xC0 == 0x80:
        position -= 1
    return position


def reserved_tokens_in(subtokens: Iterable[str], text: str) -> dict[str, int]:
    """Returns the reserved tokens within a text, with their ids: `<2zh>` of `'<2zh>_'`.

    A vocabulary's file does not mark them. A reserved token `X` is the subtoken of the whole token `X`,
    and the pre-tokenizer cuts a text that has `X` in it, as `<2zh>` into `<`, `2zh` and `>`. If it does
    not cut it, as `2zh`, the token is like others and gets its id where it stands alone.
    """
    reserved = {token: id_ for token, id_ in ROLES.items() if token in text}
    for id_, subtoken in enumerate(subtokens):
        if subtoken.endswith('_'):
            token = unescape_token(subtoken)
            if token in text and token not in ROLES and _is_reserved(subtoken, token):
                reserved[token] = id_
    return reserved


def _is_reserved(subtoken: str, token: str) -> bool:
    """Whether a subtoken spells a whole token that the pre-tokenizer never makes."""
    if not token or escape_token(token, alphabet_of([token])) != subtoken:
        return False
    # The end of a token may begin within an escape: `10;a_` is the end of `\10;a_`.
    ends = [token]
    if escape := _END_OF_ESCAPE.match(token):
        ends.append(token[escape.end() :])
    return all(len(tokenize(end)) > 1 for end in ends)
