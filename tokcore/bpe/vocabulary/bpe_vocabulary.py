"""A vocabulary of byte pair encoding with ids: entries, merges, and what stands around them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tokcore.bpe.vocabulary.tokenizer_parts import TokenizerParts
from tokcore.encoding.special_ids import SpecialIds, special_ids_by_name
from tokcore.encoding.templates import Template
from tokcore.text.byte_level.alphabet import BYTE_TO_CHARACTER

FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
"""Of an added token, as files name them."""

_CHARACTER_TO_BYTE = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)}


@dataclass(frozen=True)
class AddedToken:
    """A token that is looked for in text before all else, as `tokenizers` describes it."""

    id: int
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


@dataclass(frozen=True)
class ModelRules:
    """How the model takes what it has no entry for, by the names that a tokenizer.json has.

    Attributes:
        unk_token: the entry that stands for a character without one; None: it is dropped.
        fuse_unk: one for a run of such characters.
        byte_fallback: the entries `<0x00>` to `<0xFF>` of its bytes stand for it, if all are there.
        ignore_merges: a token that is an entry is taken whole, also if no merges lead there.
    """

    unk_token: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False


@dataclass(frozen=True)
class BpeVocabulary:
    """What a tokenizer.json of BPE holds.

    Attributes:
        entries: their ids; of byte-level ones as they are written, `Ġthe`.
        merges: (left, right) by rank.
        added: the tokens that are looked for in text.
        parts: what stands around the model.
        rules: of the model.
    """

    entries: Mapping[str, int]
    merges: tuple[tuple[str, str], ...]
    added: tuple[AddedToken, ...] = ()
    parts: TokenizerParts = field(default_factory=TokenizerParts.of)
    rules: ModelRules = ModelRules()

    @classmethod
    def learned(
        cls,
        entries: Iterable[str],
        merges: Iterable[tuple[str, str]],
        special_tokens: Iterable[str] = (),
        pattern: str = 'gpt2',
        form: str | None = None,
    ) -> BpeVocabulary:
        """Returns what was learned; the special tokens are among the entries, by id."""
        ids = {entry: id_ for id_, entry in enumerate(entries)}
        added = tuple(AddedToken(ids[token], token) for token in special_tokens)
        return cls(ids, tuple(merges), added, TokenizerParts.of(pattern, form))

    @property
    def vocab_size(self) -> int:
        return 1 + max((*self.entries.values(), *(each.id for each in self.added)), default=-1)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        # By the names of special tokens only: `UNK` may be a piece of text like others.
        named = {each.content: each.id for each in self.added if each.special}
        if self.rules.unk_token in self.entries:
            named.setdefault('[UNK]', self.entries[self.rules.unk_token])
        return special_ids_by_name(named.get)

    @property
    def template(self) -> Template:
        """What the file's post-processor puts around a row."""
        return self.parts.template

    def id_of(self, token: str) -> int | None:
        found = next((each.id for each in self.added if each.content == token), None)
        return self.entries.get(token) if found is None else found

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        """The entries by id as they are written, '' where there is none."""
        pieces = [''] * self.vocab_size
        for entry, id_ in self.entries.items():
            pieces[id_] = entry
        for each in self.added:
            pieces[each.id] = each.content
        return tuple(pieces)

    @functools.cached_property
    def piece_bytes(self) -> tuple[bytes, ...]:
        """What each id stands for, as bytes of text."""
        pieces = [bytes_of(piece, self.parts.byte_level) for piece in self.pieces]
        for each in self.added:
            pieces[each.id] = each.content.encode('utf-8', 'surrogatepass')
        return tuple(pieces)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids, joined; an id out of range stands for nothing."""
        pieces = self.piece_bytes
        return b''.join(pieces[id_] for id_ in ids if 0 <= id_ < len(pieces))

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; what is not UTF-8 becomes U+FFFD."""
        return self.decode_bytes(ids).decode('utf-8', 'replace')

    def dump(self) -> bytes:
        """Returns the tokenizer.json that tokenizers 0.22 writes."""
        model = {
            'type': 'BPE',
            'dropout': None,
            'unk_token': self.rules.unk_token,
            'continuing_subword_prefix': None,
            'end_of_word_suffix': None,
            'fuse_unk': self.rules.fuse_unk,
            'byte_fallback': self.rules.byte_fallback,
            'ignore_merges': self.rules.ignore_merges,
            'vocab': dict(sorted(self.entries.items(), key=lambda entry: entry[1])),
            'merges': [list(pair) for pair in self.merges],
        }
        added = [
            {'id': each.id, 'content': each.content}
            | {flag: getattr(each, flag) for flag in FLAGS}
            for each in sorted(self.added, key=lambda token: token.id)
        ]
        file = {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added}
        file |= {**self.parts.components, 'model': model}
        return json.dumps(file, indent=2, ensure_ascii=False).encode('utf-8', 'surrogatepass')

    @functools.cached_property
    def model(self):
        from tokcore.bpe.merging.merge_model import MergeModel, merge_numbers
        from tokcore.compiled.compilation import read_only

        ids = self.entries
        whole = {}
        if self.rules.ignore_merges:
            whole = {_token_bytes(each, self.parts.byte_level): id_ for each, id_ in ids.items()}
            whole.pop(None, None)
        return MergeModel(
            read_only(merge_numbers(self._merge_ids)),
            self._units(),
            size=self.vocab_size,
            whole=whole,
        )

    @property
    def _merge_ids(self) -> list[tuple[int, int, int]]:
        ids = self.entries
        return [(ids[left], ids[right], ids[left + right]) for left, right in self.merges]

    def _units(self):
        from tokcore.bpe.merging.token_symbols import NONE, Units
        from tokcore.bpe.merging.whole_characters import whole_characters
        from tokcore.compiled.compilation import read_only
        from tokcore.text.unicode_tables import CODE_POINTS

        ids = self.entries
        if self.parts.byte_level:
            alphabet = [BYTE_TO_CHARACTER[byte] for byte in range(256)]
            symbols = np.array([ids.get(each, -1) + 1 for each in alphabet], np.int32)
            characters = np.array([ord(each) for each in alphabet], np.uint32)
            whole = whole_characters(self._characters(), symbols.tolist(), self._merge_ids)
        else:
            symbols = np.zeros(CODE_POINTS, np.int32)
            single = {ord(each): id_ for each, id_ in ids.items() if len(each) == 1}
            symbols[list(single)] = np.array(list(single.values()), np.int32) + 1
            characters, whole = np.empty(0, np.uint32), np.empty(0, np.int32)
        fallback = np.full(256, NONE, np.int32)
        if self.rules.byte_fallback:
            fallback[:] = [ids.get(f'<0x{byte:02X}>', NONE) for byte in range(256)]
        unknown = ids.get(self.rules.unk_token, NONE)
        arrays = map(read_only, (symbols, characters, whole, fallback))
        return Units(*arrays, unknown, int(self.rules.fuse_unk))

    def _characters(self) -> dict[int, bytes]:
        """The entries that are one character of several bytes."""
        found = {}
        for entry in self.entries:
            coded = _token_bytes(entry, True) if 2 <= len(entry) <= 4 else None
            if coded and coded[0] >= 0xC0:
                text = coded.decode('utf-8', 'replace')
                if len(text) == 1 and text.encode() == coded:
                    found[ord(text)] = coded
        return found


def bytes_of(piece: str, byte_level: bool = True) -> bytes:
    """Returns the bytes that an entry stands for: of a byte-level one, byte for character.

    One with other characters, such as a special token, stands for itself.
    """
    found = _token_bytes(piece, byte_level)
    return piece.encode('utf-8', 'surrogatepass') if found is None else found


def _token_bytes(piece: str, byte_level: bool) -> bytes | None:
    if not byte_level:
        return piece.encode('utf-8', 'surrogatepass')
    found = [_CHARACTER_TO_BYTE.get(character) for character in piece]
    return None if None in found else bytes(found)
