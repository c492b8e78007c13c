"""SentencePiece's .model files of the types BPE and Unigram, read without the library.

A file is a message of Protocol Buffers, `ModelProto` of sentencepiece_model.proto.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, ModelRules, TokenizerParts, refuse
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.borders import NO_BORDERS, BorderPreTokenizer, borders_of_merges
from tokcore.foreign_tokenizers.normalizers import (
    Charsmap,
    TextStep,
    longest_replacement,
    parse_charsmap,
    sizes_of_unchanged,
    words_of_characters,
)
from tokcore.foreign_tokenizers.pre_tokenizers import MARK, Cutting
from tokcore.foreign_tokenizers.unigram import UNKNOWN_PENALTY, UnigramModel
from tokcore.foreign_tokenizers.vocabulary import JoinTokens, PretrainedVocabulary
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import (
    CHUNK,
    WIDE_BYTES,
    byte_range_mask,
    copy_chunk,
    load_word,
    store_word,
    trailing_zeros,
)
from tokcore.text.alignment import AlignedText
from tokcore.text.rows import Side
from tokcore.text.unicode import decode_word
from tokcore.wordpiece.model import WORD_ROOT, DoubleArrayTrie, double_array_trie, longest_piece

if typing.TYPE_CHECKING:
    from tokcore.bpe.model import MergeModel

_PIECES, _TRAINER, NORMALIZER, _DENORMALIZER = 1, 2, 3, 5  # fields of ModelProto
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, _UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # types of pieces
_UNIGRAM, _BPE = 1, 2
_TYPES = {3: 'WORD', 4: 'CHAR'}

_SPACE = 0x20
_FIRST_SEEN, _LAST_SEEN, _NOT_ASCII = 0x21, 0x7E, 0x80
_FIRST_OF_THREE, _LAST_OF_THREE = 0xE0, 0xEF  # leads of characters of three bytes
_FIRST_LEAD, _LAST_LEAD = 0xE4, 0xE9  # of U+4000 to U+9FFF, most of which are ideographs
_CHUNK, _WIDE = np.uint64(CHUNK), np.uint64(WIDE_BYTES)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_0, _1, _3, _8, _56 = (np.uint64(number) for number in (0, 1, 3, 8, 56))


def is_sentencepiece_file(data: bytes) -> bool:
    """Whether a file begins with a piece that has a score."""
    if data[:1] != b'\x0a':
        return False
    try:
        _, piece, _ = next(message_fields(data, ''))
        fields = _fields(_message(piece, '', 0), '', 0)
    except InputError:
        return False
    return bool(fields.get(1)) and len(_bytes(fields.get(2))) == 4


def parse_sentencepiece(data: bytes, path: str) -> PretrainedVocabulary:
    """Returns the vocabulary of a .model file.

    Control symbols, `<s>` among them, are its special tokens; SentencePiece never finds them in text.

    Raises:
        InputError: the file is damaged, or has a part that is not supported.
    """
    pieces, specs = read_model(data, path)
    if specs[_DENORMALIZER].get(2):
        refuse(path, 'denormalizer_spec', 'a denormalizer')
    trainer, spec = specs[_TRAINER], specs[NORMALIZER]
    entries = _entries(pieces, path)
    unknown = _unknown_id(pieces, path)
    fallback = _fallback(pieces, trainer, entries, path)
    kind = trainer.get(3, _UNIGRAM)
    added = [
        AddedToken(id_, piece.text)
        for id_, piece in enumerate(pieces) if piece.type == CONTROL
    ]  # fmt: skip
    space = MARK if spec.get(5, 1) else ' '
    if kind == _UNIGRAM:
        cutting = Cutting()
        make_model: functools.partial = functools.partial(_unigram, pieces, unknown, fallback)
    elif kind == _BPE:
        merges, ranks = _merges(pieces, path)
        rules = ModelRules(pieces[unknown].text, True, bool(fallback))
        vocabulary = BpeVocabulary(entries, merges, (), TokenizerParts(byte_level=False), rules)
        # User-defined symbols are found in normalized text, with U+2581.
        keeps_spaces = (
            space == MARK
            and MARK in entries
            and not any(piece.type == USER_DEFINED for piece in pieces)
        )
        borders = borders_of_merges(vocabulary, keeps_spaces)
        keeps_spaces &= borders is not NO_BORDERS
        cutting = Cutting(pre_tokenizer=BorderPreTokenizer(borders), keeps_spaces=keeps_spaces)
        space = ' ' if keeps_spaces else space
        make_model = functools.partial(_merge_model, vocabulary, ranks, keeps_spaces)
        added += [
            AddedToken(id_, piece.text, normalized=True, special=False)
            for id_, piece in enumerate(pieces) if piece.type == USER_DEFINED
        ]  # fmt: skip
    else:
        refuse(path, 'trainer_spec.model_type', f'the model {_TYPES.get(kind, kind)}')
    normalizer = text_normalizer(pieces, trainer, spec, path, space)
    return PretrainedVocabulary(
        data,
        entries,
        tuple(added),
        make_model,
        cutting,
        (
            TextStep(
                functools.partial(normalized_rows, normalizer=normalizer),
                functools.partial(_aligned, normalizer=normalizer),
            ),
        ),
        (_decoder(pieces, trainer, spec, path),),
        unk_token=pieces[unknown].text,
        is_sentencepiece=True,
        normalizes_added=False,
    )


def read_model(data: bytes, path: str) -> tuple[list[Piece], dict[int, dict[int, Any]]]:
    """Returns the pieces of a .model file by their ids, and the fields of its specs by their numbers.

    Raises:
        InputError: the file is damaged.
    """
    pieces: list[Piece] = []
    specs: dict[int, dict[int, Any]] = {_TRAINER: {}, NORMALIZER: {}, _DENORMALIZER: {}}
    for number, value, place in message_fields(data, path):
        if number == _PIECES:
            pieces.append(_piece(_message(value, path, place), path, place))
        elif number in specs:
            specs[number] |= _fields(_message(value, path, place), path, place)
    return pieces, specs


class Piece(NamedTuple):
    """An entry of a model."""

    text: str
    score: float
    type: int


def _message(value: int | bytes, path: str, place: int) -> bytes:
    if isinstance(value, int):
        damaged(path, place, 'a number in place of a message')
    return value


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b''


def _fields(message: bytes, path: str, place: int) -> dict[int, int | bytes]:
    return {number: value for number, value, _ in message_fields(message, path, place)}


def _piece(message: bytes, path: str, place: int) -> Piece:
    fields = _fields(message, path, place)
    try:
        text = _bytes(fields.get(1)).decode()
    except UnicodeDecodeError:
        damaged(path, place, 'a piece that is not UTF-8')
    score, kind = fields.get(2, bytes(4)), fields.get(3, NORMAL)
    if not text:
        damaged(path, place, 'an empty piece')
    if not isinstance(score, bytes) or len(score) != 4 or not isinstance(kind, int):
        damaged(path, place, f'the piece {text!r:.80} without a score or a type')
    value = struct.unpack('<f', score)[0]
    if not math.isfinite(value):
        damaged(path, place, f'the score {value} of the piece {text!r:.80}')
    return Piece(text, value, kind if NORMAL <= kind <= BYTE else NORMAL)


def _entries(pieces: Sequence[Piece], path: str) -> dict[str, int]:
    entries: dict[str, int] = {}
    for id_, piece in enumerate(pieces):
        if entries.setdefault(piece.text, id_) != id_:
            raise InputError(
                f'{path}: pieces[{id_}] is {piece.text!r:.80}, as pieces[{entries[piece.text]}] is; '
                'give a whole SentencePiece model'
            )
    return entries


def _unknown_id(pieces: Sequence[Piece], path: str) -> int:
    unknown = [id_ for id_, piece in enumerate(pieces) if piece.type == UNKNOWN]
    if len(unknown) != 1:
        raise InputError(
            f'{path} has {len(unknown)} pieces of the type UNKNOWN, and must have one; give a whole '
            'SentencePiece model'
        )
    return unknown[0]


def _fallback(
    pieces: Sequence[Piece], trainer: Mapping[int, Any], entries: Mapping[str, int], path: str
) -> list[int]:
    """Returns the ids of the 256 bytes; none if unknown characters are not spelled by bytes."""
    if not trainer.get(35):
        return []
    ids = [entries.get(f'<0x{byte:02X}>', -1) for byte in range(256)]
    for byte, id_ in enumerate(ids):
        if id_ < 0 or pieces[id_].type != BYTE:
            raise InputError(
                f'{path} falls back to bytes and has no piece <0x{byte:02X}>; give a whole '
                'SentencePiece model'
            )
    return ids


def _unigram(pieces: Sequence[Piece], unknown: int, fallback: Sequence[int]) -> UnigramModel:
    normal = [piece.score for piece in pieces if piece.type == NORMAL]
    lowest = min([_LARGEST_FLOAT, *normal])
    scores = unigram_scores(pieces)
    used = {
        piece.text: id_
        for id_, piece in enumerate(pieces) if piece.type in (NORMAL, USER_DEFINED)
    }  # fmt: skip
    score = float(np.float32(lowest - UNKNOWN_PENALTY))
    return UnigramModel(used, scores, score, unknown, fallback, single_precision=True)


def unigram_scores(pieces: Sequence[Piece]) -> list[float]:
    """Returns the scores with which pieces are found in text: of the user's symbols those of SentencePiece."""
    return [
        float(np.float32(0.1 * (len(piece.text.encode()) - 1)))
        if piece.type == USER_DEFINED
        else piece.score
        for piece in pieces
    ]


def _merges(pieces: Sequence[Piece], path: str) -> tuple[tuple[tuple[str, str], ...], np.ndarray]:
    """Returns the merges, and their ranks: any two neighbors that are a piece together are merged.

    Pieces of equal scores have equal ranks.
    """
    scores: dict[str, float] = {}
    for id_, piece in enumerate(pieces):
        if piece.type == _UNUSED:
            refuse(path, f'pieces[{id_}]', f'the piece {piece.text!r:.80} of the type UNUSED')
        if piece.type == NORMAL:
            scores[piece.text] = piece.score
    own = {text: text for text in scores}  # one string for all merges of a piece
    merges: list[tuple[str, str]] = []
    results: list[float] = []
    for text in sorted(scores, key=scores.__getitem__, reverse=True):
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            for part in (left, right):
                if len(part) == 1 and part not in scores:
                    refuse(path, 'pieces', f'the piece {text!r:.80} without a piece for {part!r}')
            if left in scores and right in scores:
                merges.append((own[left], own[right]))
                results.append(scores[text])
    ranks = np.cumsum(np.append(False, np.diff(results) != 0))[: len(merges)]
    return tuple(merges), ranks


def _merge_model(vocabulary: BpeVocabulary, ranks: np.ndarray, keeps_spaces: bool) -> MergeModel:
    from tokcore.bpe.model import MergeModel

    model = MergeModel(
        vocabulary.merge_ids, vocabulary.units(), size=vocabulary.vocab_size, ranks=ranks
    )
    return model.with_spaces() if keeps_spaces else model


def text_normalizer(
    pieces: Sequence[Piece],
    trainer: Mapping[int, Any],
    spec: Mapping[int, Any],
    path: str,
    space: str,
) -> TextNormalizer:
    charsmap = parse_charsmap(_bytes(spec.get(2)))
    if charsmap is None:
        raise InputError(
            f'{path}: normalizer_spec.precompiled_charsmap is damaged; give a whole SentencePiece model'
        )
    symbols = [piece.text for piece in pieces if piece.type == USER_DEFINED]
    written, removed = space.encode(), (MARK if spec.get(5, 1) else ' ').encode()
    rules = _Rules(
        read_only(np.frombuffer(written, np.uint8)),
        np.uint64(int.from_bytes(written, 'little')),
        read_only(np.frombuffer(removed, np.uint8)),
        bool(spec.get(3, 1)),
        bool(trainer.get(24, 0)),
        bool(spec.get(4, 1)),
    )
    sizes = sizes_of_unchanged(charsmap)
    sizes[[symbol.encode()[0] for symbol in symbols]] = 0
    trie = double_array_trie([(symbol, 0) for symbol in symbols], '\0')
    keeps_ascii = bool(sizes[_FIRST_SEEN : _LAST_SEEN + 1].all())
    keeps_ideographs = bool(sizes[_FIRST_LEAD : _LAST_LEAD + 1].all())
    words = words_of_characters(charsmap)
    for symbol in symbols:
        lead = symbol.encode()[0]
        if 0xE0 <= lead < 0xF0:
            words[(lead & 0xF) << 12 : (lead & 0xF) + 1 << 12] = 0
    return TextNormalizer(
        charsmap,
        read_only(sizes),
        keeps_ascii,
        keeps_ideographs,
        read_only(words),
        trie,
        bool(symbols),
        rules,
    )


class _Rules(NamedTuple):
    """What becomes of spaces."""

    space: np.ndarray  # uint8[1 or 3]: what replaces U+0020
    space_word: np.uint64  # its bytes, the first the lowest
    mark: np.ndarray  # uint8[1 or 3]: what is removed at the end, too
    adds_space: bool  # to each text that is not empty
    at_end: bool  # that space, not at the start
    removes_spaces: bool  # at the start, at the end, and after another space


class TextNormalizer(NamedTuple):
    """The normalizer of a SentencePiece model."""

    charsmap: Charsmap
    unchanged: np.ndarray
    """uint8[256]: `sizes_of_unchanged`; 0 also for a byte that a symbol begins with."""

    keeps_ascii: bool
    """Whether `unchanged` is 1 for all characters of ASCII that can be seen."""

    keeps_ideographs: bool
    """Whether `unchanged` is 3 for all characters of U+4000 to U+9FFF."""

    words: np.ndarray
    """uint64[0x10000]: `words_of_characters`; 0 also for characters of a byte that a symbol begins with."""

    symbols: DoubleArrayTrie
    """Pieces that the user defined, which stay as they are."""

    has_symbols: bool
    rules: _Rules


def normalized_rows(side: Side, normalizer: TextNormalizer) -> Side:
    """Returns the normalized texts."""
    size = int((side.ends - side.starts).sum())
    out = np.empty(size + size // 2 + 16 * len(side) + 64, np.uint8)
    ends = np.zeros(len(side) + 1, np.int64)
    row = 0
    while True:
        row = _normalize(*side.arrays(), row, normalizer, out, ends)
        if row == len(side):
            break
        longer = np.empty(2 * len(out), np.uint8)
        longer[: ends[row]] = out[: ends[row]]
        out = longer
    return Side(read_only(out[: ends[-1]]), read_only(ends[:-1]), read_only(ends[1:]))


def _aligned(text: AlignedText, normalizer: TextNormalizer) -> AlignedText:
    """Returns the normalized text; what a character stands for goes up to where the next one's begins."""
    data = text.text.encode('utf-8', 'surrogatepass')
    array, rules = with_margin(np.frombuffer(data, np.uint8)), normalizer.rules
    space, mark = rules.space.tobytes().decode(), rules.mark.tobytes().decode()

    def unit(place: int) -> tuple[str, int]:
        source, first, last, after = _next_unit(
            array, np.uint64(place), np.uint64(len(data)), normalizer
        )
        unit_text = normalizer.charsmap.replacements if source else array
        return unit_text[int(first) : int(last)].tobytes().decode('utf-8', 'surrogatepass'), int(
            after
        )

    place, characters, origins = 0, '', []
    while rules.removes_spaces and place < len(data) and unit(place)[0] == ' ':
        place = unit(place)[1]
    if place == len(data):
        return text._replace(text='', spans=[])
    if rules.adds_space and not rules.at_end:
        characters, origins = space, [place]
    was_space = rules.removes_spaces
    while place < len(data):
        written, after = unit(place)
        if was_space:
            written = written.lstrip(' ')
        if written:
            was_space = rules.removes_spaces and written.endswith(' ')
        characters += written.replace(' ', space)
        origins += [place] * len(written)
        place = after
    while rules.removes_spaces and characters.endswith((space, mark)):
        characters, place = characters[:-1], origins.pop()
    if rules.adds_space and rules.at_end:
        characters += space
        origins.append(place)
    starts = [
        start
        for character, (start, _) in zip(text.text, text.spans, strict=True)
        for _ in character.encode('utf-8', 'surrogatepass')
    ]
    bounds = [[*starts, text.spans[-1][1]][origin] for origin in (*origins, place)]
    return text._replace(text=characters, spans=[*itertools.pairwise(bounds)])


@kernel_without_allocation
def _normalize(text, starts, ends, row, normalizer, out, out_ends):
    """Writes the normalized rows from a row on to `out`; returns the first that has no room.

    Row r is out[out_ends[r]:out_ends[r + 1]].
    """
    rules, replacements = normalizer.rules, normalizer.charsmap.replacements
    space_size = np.uint64(len(rules.space))
    room = np.uint64(len(out))
    first_copied = _FIRST_SEEN
    if rules.space_word == _SPACE and not rules.removes_spaces and normalizer.unchanged[_SPACE]:
        first_copied = _SPACE
    while row < len(starts):
        place, end = np.uint64(starts[row]), np.uint64(ends[row])
        used = begin = np.uint64(out_ends[row])
        if rules.removes_spaces:
            while place < end:
                source, first, last, after = _next_unit(text, place, end, normalizer)
                unit = replacements if source else text
                if last - first != _1 or unit[first] != _SPACE:
                    break
                place = after
        if place < end:
            if used + np.uint64(2) * space_size > room:
                return row
            if rules.adds_space and not rules.at_end:
                used = _put_space(out, used, rules.space)
            was_space = rules.removes_spaces
            while place < end:
                byte = text[place]
                has_chunk = place + _CHUNK <= np.uint64(len(text)) and used + _CHUNK <= room
                run = _0
                if has_chunk and normalizer.keeps_ascii and first_copied <= byte <= _LAST_SEEN:
                    run = _ascii_run(text, place, end, first_copied)
                elif (
                    has_chunk and normalizer.keeps_ideographs and _FIRST_LEAD <= byte <= _LAST_LEAD
                ):
                    run = _ideograph_run(text, place, end)
                if run:
                    copy_chunk(out, used, text, place)
                    if run > _WIDE:
                        copy_chunk(out, used + _WIDE, text, place + _WIDE)
                    used += run
                    place += run
                    was_space = False
                    continue
                if has_chunk and _FIRST_OF_THREE <= byte <= _LAST_OF_THREE and place + _3 <= end:
                    word = normalizer.words[decode_word(load_word(text, place))]
                    if word:
                        store_word(out, used, word)
                        used += word >> _56
                        place += _3
                        was_space = False
                        continue
                size = np.uint64(normalizer.unchanged[byte])
                after = place + size
                # A combining mark after a character of ASCII may change it.
                stays = place < after and (
                    after == end or (after < end and (size > _1 or text[after] < _NOT_ASCII))
                )
                if stays and used + _8 <= room:
                    if byte == _SPACE:
                        if not was_space:
                            store_word(out, used, rules.space_word)
                            used += space_size
                        was_space = rules.removes_spaces
                    else:
                        if has_chunk:
                            store_word(out, used, load_word(text, place))
                        else:
                            for k in range(size):
                                out[used + k] = text[place + k]
                        used += size
                        was_space = False
                    place = after
                    continue
                source, first, last, after = _next_unit(text, place, end, normalizer)
                unit = replacements if source else text
                while was_space and first < last and unit[first] == _SPACE:
                    first += _1
                if used + (last - first + _1) * space_size > room:
                    return row
                if first < last:
                    was_space = unit[last - _1] == _SPACE and rules.removes_spaces
                    while first < last:
                        if unit[first] == _SPACE:
                            used = _put_space(out, used, rules.space)
                        else:
                            out[used] = unit[first]
                            used += _1
                        first += _1
                place = after
            while rules.removes_spaces:
                if _ends_with(out, begin, used, rules.space):
                    used -= space_size
                elif _ends_with(out, begin, used, rules.mark):
                    used -= np.uint64(len(rules.mark))
                else:
                    break
            if rules.adds_space and rules.at_end:
                used = _put_space(out, used, rules.space)
        row += 1
        out_ends[row] = np.int64(used)
    return row


@kernel_without_allocation
def _ascii_run(text, place, end, first):
    """Returns how many bytes (uint64) of text[place:end], 64 at most, are of ASCII, from `first` to U+007E.

    64 bytes can be read. A character that a mark may follow is left out.
    """
    others = ~byte_range_mask(text, place, _FIRST_SEEN, _LAST_SEEN)
    if first == _SPACE:
        others &= ~byte_range_mask(text, place, _SPACE, _SPACE)
    if end - place < _CHUNK:
        others |= ~_0 << (end - place)
    run = trailing_zeros(others)
    after = place + run
    if run > _0 and after < end and text[after] >= _NOT_ASCII:
        run -= _1
    return run


@kernel_without_allocation
def _ideograph_run(text, place, end):
    """Returns how many bytes (uint64) of text[place:end], 64 at most, are of whole characters of U+4000 to U+9FFF.

    64 bytes can be read, the first of which is of such a character.
    """
    others = ~byte_range_mask(text, place, 0x80, 0xBF)
    others &= ~byte_range_mask(text, place, _FIRST_LEAD, _LAST_LEAD)
    if end - place < _CHUNK:
        others |= ~_0 << (end - place)
    run = trailing_zeros(others)
    return run - run % _3


@kernel_without_allocation
def _next_unit(text, place, end, normalizer):
    """Returns what is written for the text at a place.

    (source, first, last, after): replacements[first:last] if `source`, else text[first:last]; and
    where the text goes on.
    """
    if normalizer.has_symbols:
        _, symbol_end = longest_piece(text, place, end, WORD_ROOT, normalizer.symbols)
        if symbol_end > place:
            return False, place, symbol_end, symbol_end
    after, first = longest_replacement(text, place, end, normalizer.charsmap)
    if after > place:
        replacements = normalizer.charsmap.replacements
        last = first
        while last < np.uint64(len(replacements)) and replacements[last]:
            last += _1
        return True, first, last, after
    byte = text[place]
    length = (
        np.uint64(1) + np.uint64(byte >= 0xC0) + np.uint64(byte >= 0xE0) + np.uint64(byte >= 0xF0)
    )
    after = min(place + length, end)
    return False, place, after, after


@kernel_without_allocation
def _put_space(out, used, space):
    for k in range(len(space)):
        out[used + np.uint64(k)] = space[k]
    return used + np.uint64(len(space))


@kernel_without_allocation
def _ends_with(out, begin, used, space):
    size = np.uint64(len(space))
    if used - begin < size:
        return False
    is_space = True
    for k in range(size):
        is_space &= out[used - size + k] == space[k]
    return is_space


def _decoder(
    pieces: Sequence[Piece], trainer: Mapping[int, Any], spec: Mapping[int, Any], path: str
) -> JoinTokens:
    kinds = {piece.text: piece.type for piece in pieces if piece.type != NORMAL}
    try:
        unknown = _bytes(trainer.get(44, ' ⁇ '.encode())).decode()
    except UnicodeDecodeError:
        raise InputError(
            f'{path}: trainer_spec.unk_surface is not UTF-8; give a whole SentencePiece model'
        ) from None
    drops, removes = (bool(spec.get(number, 1)) for number in (3, 4))
    return functools.partial(
        _joined, kinds=kinds, unknown=unknown, drops_first=drops or removes, removes=removes
    )


def _joined(
    tokens: list[str], kinds: Mapping[str, int], unknown: str, drops_first: bool, removes: bool
) -> list[str]:
    """Returns the text of pieces, as SentencePiece decodes them."""
    text, spelled = '', bytearray()
    is_first, dropped = True, False
    for token in [*tokens, None]:
        kind = None if token is None else kinds.get(token, NORMAL)
        if token is not None and kind == BYTE:
            spelled.append(int(token[3:5], 16))
            continue
        # U+FFFD stands for each byte that is not part of a character.
        text += bytes(spelled).decode('utf-8', 'surrogateescape').translate(_REPLACED)
        spelled.clear()
        if token is None:
            break
        if dropped or text:
            is_first = False
        dropped = False
        if kind == UNKNOWN:
            text += unknown
        elif kind != CONTROL:
            if is_first and drops_first and token.startswith(MARK):
                token = token[1:]
                dropped = not removes
            text += token.replace(MARK, ' ')
    return [text]


_REPLACED = {0xDC00 + byte: '\ufffd' for byte in range(0x80, 0x100)}

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_MOST_VARINT_BYTES = 10


def message_fields(
    data: bytes, path: str, place: int = 0
) -> Iterator[tuple[int, int | bytes, int]]:
    """Yields the fields of a message in their order: the number, the value, and its place.

    Values are integers, or bytes: a string, a message, or four or eight bytes of a number. The message
    begins at byte `place` of the file.

    Raises:
        InputError: the message is damaged; the error names the byte.
    """
    position, size = 0, len(data)
    while position < size:
        begin = position
        tag, position = _varint(data, position, path, place)
        kind = tag & 7
        if kind == _VARINT:
            number, position = _varint(data, position, path, place)
            yield tag >> 3, number, place + begin
            continue
        if kind == _BYTES:
            length, position = _varint(data, position, path, place)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            damaged(path, place + begin, f'a field of the wire type {kind}')
        if position + length > size:
            damaged(path, place + begin, 'a field that is cut off')
        yield tag >> 3, data[position : position + length], place + position
        position += length


def _varint(data: bytes, position: int, path: str, place: int) -> tuple[int, int]:
    """Returns the number at a position, and where it ends."""
    value = 0
    for shift in range(_MOST_VARINT_BYTES):
        if position + shift >= len(data):
            break
        byte = data[position + shift]
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), position + shift + 1
    damaged(path, place + position, 'a number that does not end')


def damaged(path: str, place: int, what: str) -> typing.NoReturn:
    """Raises the InputError for a file that is not what it should be at a byte."""
    raise InputError(f'{path}: {what} at byte {place}; give a whole SentencePiece model')
