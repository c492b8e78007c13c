"""Tensor2Tensor's SubwordTextEncoder: text to ids of an invertible subword vocabulary, and back.

Text is cut into tokens, each token is escaped, and the escaped token is cut greedily from the left
into the longest subtokens; joining undoes all of it. Long tokens are cut a window at a time: no cut
looks farther ahead than the longest subtoken is long. A vocabulary file has one subtoken a line in
single quotes, its line number the id. Nothing is escaped inside the quotes, so a subtoken with a
line end cannot be written; Tensor2Tensor writes it, and every later id is then wrong.
"""

import functools
import os
import pathlib
import secrets
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.kernels import MissedTokens
from tokcore.encoding.vocabulary import SpecialIds, read_vocabulary_file
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.subword.trie_kernels import (
    MAX_GROWTH,
    SubwordState,
    Trie,
    TrieWalk,
    build_trie,
    escape_to_code_points,
    probe_bigrams,
    segment_longest_match,
)
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens
from tokcore.text.t2t import (
    ESCAPE_CHARACTERS,
    T2TPreTokenizer,
    alphabet_of,
    detokenize,
    escape_token,
    unescape_token,
)
from tokcore.text.unicode import CODE_POINTS

PAD_ID = 0
EOS_ID = 1
_ROLES = {'<pad>': PAD_ID, '<EOS>': EOS_ID}

UNSTORABLE = '\r'
"""What no subtoken of a file can have: whoever reads it drops this, as Tensor2Tensor does."""

_REMEDY = 'give a subword vocabulary as written by tokbeam or Tensor2Tensor'

WINDOW_BYTES = 64 << 10
"""At up to a hundred times as much memory it still fits a processor's cache mostly; half would wait
for the interpreter twice as often."""

_SHOWN = 60  # characters of what cannot be cut
_CODE_POINT = np.dtype('<u4')


class WindowSegmenter:
    """Cuts tokens into the longest subtokens of a vocabulary, in windows."""

    def __init__(self, state: SubwordState, subtokens: Sequence[str]):
        self._state = state
        self._lengths = np.array([len(subtoken) for subtoken in subtokens], np.int64)
        self._longest = int(self._lengths.max(initial=0))

    def segment(self, text: np.ndarray, start: int, end: int) -> Iterator[np.ndarray]:
        """Yields the ids, int32[...], of the token text[start:end], as many as come at once.

        Raises ValueError naming the rest of the token if no subtoken begins it.
        """
        codes = np.empty(0, np.uint32)  # spelled and not yet cut
        stop = start
        while stop < end:
            begin, stop = stop, _character_start(text, min(stop + self._window_bytes, end), end)
            codes = np.concatenate([codes, self._spelled(text, begin, stop, stop == end)])
            # What is near the end may be cut otherwise with what follows.
            surely = len(codes) - (0 if stop == end else self._longest)
            ids, done = self._cut_codes(codes, surely, end - start)
            yield ids
            codes = codes[done:]

    @property
    def _window_bytes(self) -> int:
        return max(WINDOW_BYTES, self._longest)

    def _spelled(self, text: np.ndarray, start: int, end: int, is_last: bool) -> np.ndarray:
        codes = np.empty(MAX_GROWTH * (end - start) + 1, np.uint32)
        start_at, end_at, number = (np.array([each], np.uint64) for each in (start, end, 0))
        token = ScannedTokens(text, start_at, end_at, np.empty(0, np.int64))
        bounds = np.empty(2, np.uint64)
        missed = MissedTokens(number, 1, end - start)
        escape_to_code_points(token, missed, self._state.alphabet, codes, bounds)
        # The kernel ends a token each time.
        return codes[: int(bounds[1]) - (not is_last)]

    def _cut_codes(
        self, codes: np.ndarray, surely: int, token_bytes: int
    ) -> tuple[np.ndarray, int]:
        """The ids of the cuts that begin before a place, and where the next one begins."""
        if surely <= 0:
            return np.empty(0, np.int32), 0
        size = len(codes)
        matches, deeper = np.empty(size, np.uint64), np.empty(size, np.uint64)
        ids, id_bounds = np.empty(size, np.int32), np.empty(2, np.uint64)
        codes, bounds = np.append(codes, np.uint32(0)), np.array([0, size], np.uint64)
        walk = TrieWalk(codes, bounds, matches, deeper, ids, id_bounds)
        probe_bigrams(walk, size, self._state.trie)
        end, left = size, size
        while left:
            bounds[1] = end
            _, left = segment_longest_match(walk, 1, self._state.trie)
            end -= left
            if left and end < surely:
                rest = codes[end : min(size, end + _SHOWN)].astype(_CODE_POINT).tobytes()
                shown = rest.decode('utf-32-le', 'surrogatepass')
                raise ValueError(
                    f'no subtoken of the vocabulary begins {shown!r}, in a token of {token_bytes} '
                    'bytes; the vocabulary lacks characters of its own alphabet, so learn another '
                    'one'
                )
        ids = ids[: int(id_bounds[1])]
        ends = np.cumsum(self._lengths[ids])
        kept = min(len(ids), int(np.searchsorted(ends, surely)) + 1)
        return ids[:kept], int(ends[kept - 1])


class SubwordModel:
    """A `Model`: tokens are escaped and cut greedily from the left into the longest subtokens."""

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id. Of equal ones the last one has its id, empty ones have none."""
        self._subtokens = tuple(subtokens)

    @property
    def size(self) -> int:
        return len(self._subtokens)

    @functools.cached_property
    def state(self) -> SubwordState:
        """The vocabulary as kernels read it, built at first use."""
        # Lone surrogates are characters like others here: any str can be encoded.
        joined = ''.join(self._subtokens).encode('utf-32-le', 'surrogatepass')
        codes = np.frombuffer(joined, np.dtype('<u4'))
        offsets = row_offsets([len(subtoken) for subtoken in self._subtokens])
        trie = Trie(*map(read_only, build_trie(codes, read_only(offsets))))

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

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        return self._windows.segment(part.text, part.start, part.end)

    @functools.cached_property
    def _windows(self) -> WindowSegmenter:
        return WindowSegmenter(self.state, self._subtokens)

    def unspelled(self, token: str, left: int) -> str:
        escaped = escape_token(token, alphabet_of(self._subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-left:]!r}, '
            f'the rest of the token {token!r}; the vocabulary lacks characters of its own '
            'alphabet, so learn another one'
        )


class SubwordTextEncoder:
    """Encodes and decodes as Tensor2Tensor 1.15.7 does with the same vocabulary.

    Example: with the subtokens `<pad>_ <EOS>_ the_ c at_`, `encode('the cat')` gives `[2, 3, 4]`.
    """

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id, reserved ones (`<pad>_`, `<EOS>_`, ...) included.

        Of equal subtokens `encode` gives the last one's id; an empty one only takes an id.
        """
        self._subtokens = tuple(subtokens)
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @property
    def special_ids(self) -> SpecialIds:
        """The ids that have a role: padding, and the end of a row."""
        return SpecialIds(pad=PAD_ID, end=EOS_ID)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a reserved token by its name, `<EOS>`, or None if there is none."""
        if token in _ROLES:
            return _ROLES[token]
        escaped = escape_token(token, alphabet_of([token]))
        return self._subtokens.index(escaped) if escaped in self._subtokens else None

    def dump(self) -> bytes:
        """Returns the file that Tensor2Tensor's `store_to_file` writes.

        Raises ValueError for subtokens that the format cannot hold.
        """
        return dump_vocabulary(self._subtokens)

    @classmethod
    def load(cls, path: str | os.PathLike) -> 'SubwordTextEncoder':
        """Reads a vocabulary file; see `parse_vocabulary` for what is taken.

        Raises InputError if the file cannot be read or is no vocabulary.
        """
        return cls(parse_vocabulary(read_vocabulary_file(path), os.fspath(path)))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the file that Tensor2Tensor's `store_to_file` writes, all of it or nothing.

        Raises ValueError, before writing, for subtokens that the format cannot hold.
        """
        data = self.dump()
        path = pathlib.Path(path)
        temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}')
        try:
            with open(temporary, 'xb') as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @property
    def subtokens(self) -> tuple[str, ...]:
        """The subtokens by id."""
        return self._subtokens

    @property
    def pieces(self) -> tuple[str, ...]:
        """The subtokens by id, as all vocabularies have them."""
        return self._subtokens

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns what `decode` gives, in UTF-8; half of a surrogate pair in three bytes."""
        return self.decode(ids).encode('utf-8', 'surrogatepass')

    @property
    def vocab_size(self) -> int:
        """The number of ids, those of duplicates and empty subtokens included."""
        return len(self._subtokens)

    @functools.cached_property
    def model(self) -> SubwordModel:
        """The vocabulary as the block engine takes it; threads can share it."""
        return SubwordModel(self._subtokens)

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(T2TPreTokenizer(), self.model, cache_bytes)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, as it stands and without EOS.

        Raises ValueError naming the rest of a token that no subtoken begins: the vocabulary then
        lacks a character of its own alphabet, such as those that escaping needs.
        """
        return self._encoder.encode(text)

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; `strip_extraneous` drops padding and EOS from the end first.

        An id out of range stands for nothing, elsewhere `<pad>` and `<EOS>` are shown as text.
        """
        ids = list(ids)
        while strip_extraneous and ids and ids[-1] in self.special_ids.at_end:
            ids.pop()
        escaped = ''.join(self.decode_list(ids)).split('_')
        return detokenize(filter(None, map(unescape_token, escaped)))

    def decode_list(self, ids: Iterable[int]) -> list[str]:
        """Returns each id's subtoken as it stands in the vocabulary, '' for an id out of range."""
        return [self._subtokens[id_] if 0 <= id_ < len(self._subtokens) else '' for id_ in ids]


def parse_vocabulary(data: bytes, name: str) -> list[str]:
    r"""Returns the subtokens of a vocabulary file, by id; `name` stands for it in errors.

    As Tensor2Tensor reads it: lines end at `\n`, every `\r` is dropped, whitespace at the end too,
    and then one pair of single or double quotes. Every line has an id, also a blank one.

    Raises InputError if this is no vocabulary: empty, not UTF-8, or not beginning with `<pad>` and
    `<EOS>` (or `<pad>_` and `<EOS>_`, as Tensor2Tensor writes them since July 2018).
    """
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
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

    `'\n'` gives `b"''\n"`. Raises ValueError for another subtoken that would not come back: one with
    `\n`, `\r` or a surrogate.
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
    # A line of a single quote is its own pair, so it gives '' as in Tensor2Tensor.
    return line[1:-1] if line[:1] in ("'", '"') and line[0] == line[-1] else line


def _check_reserved(subtokens: list[str], name: str) -> None:
    for place, reserved in enumerate(('<pad>', '<EOS>')):
        if place == len(subtokens):
            raise InputError(
                f'{name}: the file ends before line {place + 1}, which must be {reserved!r}; '
                f'{_REMEDY}'
            )
        found = subtokens[place].removesuffix('_')
        if found.lower() != reserved.lower():
            # A file that is something else may have very long lines.
            shown = subtokens[place] if len(subtokens[place]) <= 40 else subtokens[place][:40] + '…'
            raise InputError(
                f'{name}: line {place + 1} is {shown!r} where a vocabulary has {reserved!r}; '
                f'{_REMEDY}'
            )


def _character_start(text: np.ndarray, place: int, end: int) -> int:
    """The place, or where the character begins that goes on there; `end` is where one ends."""
    while place < end and text[place] & 0xC0 == 0x80:
        place -= 1
    return place
