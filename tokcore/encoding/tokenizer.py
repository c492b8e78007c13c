"""What the tokenizers of all schemes share: single texts and batches, offsets, special ids, files."""

from __future__ import annotations

import abc
import operator
import os
import pathlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tokcore.encoding.encoder import SharedEncoder, check_text
from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template, Vocabulary
from tokcore.errors import InputError
from tokcore.text.alignment import Span


@dataclass(frozen=True)
class Encoding:
    """A text as ids, and where each is in the text.

    Attributes:
        ids: of the pieces.
        tokens: the pieces, as the vocabulary writes them.
        offsets: for each piece (start, end) in characters: `text[start:end]` became it. A piece that
            is part of a character has the whole character, one that is in no place of the text, as
            `[CLS]`, has (0, 0).

    Examples:
        >>> tokenizer = tokcore.load_tokenizer('data/enzh')
        >>> encoding = tokenizer.encode_with_offsets('Spring came.')
        >>> encoding.tokens, encoding.offsets
        (['S', 'pri', 'ng_', 'came_', '._'], [(0, 1), (1, 4), (4, 6), (7, 11), (11, 12)])
    """

    ids: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    offsets: list[Span] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer(abc.ABC):
    """Text to ids and back, by one vocabulary; threads can share it, and it can be pickled.

    Examples:
        >>> tokenizer = tokcore.load_tokenizer('data/enzh')
        >>> ids = tokenizer.encode('Spring came late.')
        >>> ids, tokenizer.decode(ids), len(tokenizer), tokenizer.special_ids.end
        ([97, 377, 792, 844, 1110, 3], 'Spring came late.', 2065, 1)
    """

    _encoder: SharedEncoder
    """Encodes single texts and batches."""

    vocabulary: Vocabulary

    _around: Template = NO_TEMPLATE
    """The ids that `encode` puts around those of the text."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text; with `add_special_tokens`, those of the vocabulary's template around them.

        Many vocabularies have an empty template; that of BERT is `[CLS] $A [SEP]`.

        Raises:
            ValueError: a part of the text has no ids, and the vocabulary has no unknown token.
        """
        before, after = self._around if add_special_tokens else NO_TEMPLATE
        return self._encoder.encode(self._checked(text), before, after)

    @abc.abstractmethod
    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Returns where each of the ids of a text is in it; ValueError if that is not known."""

    def _checked(self, text: str) -> str:
        """Returns a text as it is encoded; ValueError if the original does not encode it."""
        return text

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def __len__(self) -> int:
        return self.vocab_size

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        roles = [
            f'{role}={id_}' for role, id_ in self.special_ids._asdict().items() if id_ is not None
        ]
        return f'{type(self).__name__}({", ".join([f"vocab_size={self.vocab_size}", *roles])})'

    @property
    def special_ids(self) -> SpecialIds:
        """The ids that have a role: `pad`, `begin`, `end`, `unknown`; None where no id has it."""
        return self.vocabulary.special_ids

    @property
    def pieces(self) -> Sequence[str]:
        """The pieces by id, as they are written in the vocabulary's file."""
        return self.vocabulary.pieces

    def id_of(self, token: str) -> int | None:
        """Returns the id of a token, or None if there is no such token."""
        return self.vocabulary.id_of(token)

    def encode_batch(
        self, texts: Iterable[str], add_special_tokens: bool = True
    ) -> list[list[int]]:
        """Returns `encode` of each text; several at once cost much less than one by one."""
        if isinstance(texts, str):
            raise TypeError('texts are several strings; put a single one in a list')
        before, after = self._around if add_special_tokens else NO_TEMPLATE
        return self._encoder.encode_batch([*map(self._checked, texts)], before, after)

    def encode_with_offsets(self, text: str, add_special_tokens: bool = True) -> Encoding:
        """Returns the ids of `encode`, and where each is in the text.

        Raises:
            ValueError: as `encode`; or the pieces do not spell the text, so offsets are not known.
        """
        ids = self.encode(text, add_special_tokens=False)
        spans = self._spans(text, ids)
        if add_special_tokens:
            before, after = self._around
            ids = [*before, *ids, *after]
            spans = [*[(0, 0)] * len(before), *spans, *[(0, 0)] * len(after)]
        pieces = self.pieces
        return Encoding(ids, [pieces[id_] for id_ in ids], spans)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, as the scheme's decoder joins it; bytes that are not UTF-8 are U+FFFD.

        Raises:
            InputError: the vocabulary does not have one of the ids.
        """
        return self.vocabulary.decode(self._known(ids))

    def _known(self, ids: Iterable[int]) -> list[int]:
        """Returns ids as a list; raises InputError for one that the vocabulary does not have."""
        known, size = [operator.index(id_) for id_ in ids], self.vocab_size
        # Files of ranks do not list the special tokens, whose ids are above all others.
        if not getattr(self.vocabulary, 'has_unlisted_ids', False):
            for id_ in known:
                if not 0 <= id_ < size:
                    raise InputError(
                        f'{id_} is not an id of the vocabulary, which has {size:,} from 0 on; decode ids with '
                        'the vocabulary that made them'
                    )
        return known

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Returns `decode` of each list of ids."""
        return [self.decode(ids) for ids in batch]

    def save(self, path: str | os.PathLike) -> None:
        """Writes the vocabulary's file, whole or not at all.

        Raises ValueError, before writing, for a vocabulary that its file cannot hold.
        """
        write_whole(path, self.vocabulary.dump())


def write_whole(path: str | os.PathLike, data: bytes) -> None:
    """Writes a file; if that fails, the path is unchanged."""
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


def without_surrogates(text: str) -> str:
    """Returns a text; raises ValueError if there is a surrogate in it, TypeError if it is not a string."""
    check_text(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f'the text has the surrogate U+{ord(text[error.start]):04X} at index {error.start}, '
                "which is not a character; text.encode('utf-16', 'surrogatepass').decode('utf-16', "
                "'replace') joins pairs and replaces others"
            ) from None
    return text


def byte_spans(text: str) -> list[Span]:
    """Returns, for each byte of a text in UTF-8, the span of its character."""
    return [
        (place, place + 1)
        for place, character in enumerate(text)
        for _ in character.encode('utf-8', 'surrogatepass')
    ]


def piece_spans(lengths: Iterable[int], units: Sequence[Span]) -> list[Span]:
    """Returns the spans of consecutive pieces, by the number of units in each.

    Raises:
        ValueError: the pieces do not consist of exactly these units.
    """
    spans = []
    end = 0
    for length in lengths:
        first, end = end, end + length
        if end > len(units):
            break
        if length:
            spans.append((units[first][0], units[end - 1][1]))
        else:
            place = units[first - 1][1] if first else 0
            spans.append((place, place))
    if end != len(units):
        raise ValueError(
            'the pieces do not spell this text one after another, so their offsets are not known; '
            'use encode'
        )
    return spans


def token_spans(text: str, tokens: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yields each token and where it begins: its first occurrence after the token before it."""
    end = 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        yield token, start
