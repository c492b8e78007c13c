"""A vocabulary of byte pair encoding: entries with ids, merges, and the parts of a tokenizer.json.

A part that is not supported is refused by name, with its JSON path in the file.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import json
import logging
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template, special_ids_by_name
from tokcore.errors import InputError
from tokcore.text.byte_level import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE, spelled_tokens
from tokcore.text.expression_trees import Tree
from tokcore.text.expressions import ExpressionError, oniguruma
from tokcore.text.patterns import (
    DEFINITIONS,
    DIGITS,
    PATTERNS,
    expressions_of,
    named_pattern,
    patterns_of,
)

if typing.TYPE_CHECKING:
    import numpy as np

    from tokcore.bpe.model import MergeModel
    from tokcore.bpe.model_kernels import Units
    from tokcore.bpe.phrases import Joins
    from tokcore.kernels.hash_tables import TokenLookup

_LOGGER = logging.getLogger(__name__)

FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
"""The properties of an added token, by their names in files."""

Form = Literal['NFC', 'NFKC']
_FORMS: dict[str, Form] = {'NFC': 'NFC', 'NFKC': 'NFKC'}

_BYTE_LEVEL: Mapping[str, Any] = {
    'type': 'ByteLevel',
    'add_prefix_space': False,
    'trim_offsets': True,
    'use_regex': True,
}


@dataclass(frozen=True)
class AddedToken:
    """A token that is found in text before the text is split, as `tokenizers` describes it."""

    id: int
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


@dataclass(frozen=True)
class ModelRules:
    """What the model does with characters and tokens, by the names in a tokenizer.json.

    Attributes:
        unk_token: the entry for a character without one; None: the character is dropped.
        fuse_unk: a run of such characters is one entry.
        byte_fallback: such a character is the entries `<0x00>` to `<0xFF>` of its bytes, if all exist.
        ignore_merges: a token that is an entry is not merged, even if no merges produce it.
        ranks_of_results: merges with the same result have the same rank, as in tiktoken and
            SentencePiece; they are next to each other.
    """

    unk_token: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    ranks_of_results: bool = False


@dataclass(frozen=True)
class TokenizerParts:
    """All parts of a tokenizer.json but the model.

    Attributes:
        patterns: each cuts the tokens of the one before; see `expressions_of`.
        byte_level: whether symbols are bytes; otherwise they are characters.
        form: the Unicode normalization of text, 'NFC' or 'NFKC', or None.
        add_prefix_space: whether a space is added to a text that does not start with one.
        template: the ids before and after those of a row.
        components: normalizer, pre_tokenizer, post_processor and decoder, as in the file.
    """

    patterns: tuple[str, ...] = ('gpt2',)
    byte_level: bool = True
    form: Form | None = None
    add_prefix_space: bool = False
    template: Template = NO_TEMPLATE
    components: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        patterns: tuple[str, ...] = ('gpt2',),
        form: Form | None = None,
        add_prefix_space: bool = False,
    ) -> TokenizerParts:
        """Returns the parts of byte-level BPE with these patterns."""
        is_last_gpt2 = patterns[-1] == 'gpt2'  # which ByteLevel has itself
        byte_level = dict(_BYTE_LEVEL, add_prefix_space=add_prefix_space, use_regex=is_last_gpt2)
        pre_tokenizer: Any = byte_level
        if len(patterns) > 1 or not is_last_gpt2:
            others = patterns[: len(patterns) - is_last_gpt2]
            cutting = [part for pattern in others for part in _cutting(pattern)]
            pre_tokenizer = {'type': 'Sequence', 'pretokenizers': [*cutting, byte_level]}
        components = {
            'normalizer': None if form is None else {'type': form},
            'pre_tokenizer': pre_tokenizer,
            'post_processor': None,
            'decoder': dict(_BYTE_LEVEL),
        }
        return cls(patterns, True, form, add_prefix_space, components=components)

    @property
    def is_named(self) -> bool:
        """Whether one pattern cuts texts, and has a name."""
        return len(self.patterns) == 1 and self.patterns[0] in PATTERNS

    def with_whole_texts(self) -> TokenizerParts:
        """Returns these parts with a pre-tokenizer that does not cut texts."""
        whole = self.of(('none',), self.form, self.add_prefix_space)
        components = {**self.components, 'pre_tokenizer': whole.components['pre_tokenizer']}
        return dataclasses.replace(self, patterns=whole.patterns, components=components)


class Spelling(NamedTuple):
    """How entries spell text.

    Attributes:
        byte_level: whether their characters stand for bytes.
        mark: stands for a space.
        joiner: begins entries that do not begin a word.
        suffix: ends entries that end a word.
    """

    byte_level: bool
    mark: str = '▁'
    joiner: str = ''
    suffix: str = ''


class EntriesWithAddedTokens(abc.ABC):
    """What vocabularies with entries and added tokens of Hugging Face's kind have in common."""

    entries: Mapping[str, int]
    added: tuple[AddedToken, ...]

    @property
    @abc.abstractmethod
    def spelling(self) -> Spelling:
        """How entries spell text."""

    @property
    @abc.abstractmethod
    def special_ids(self) -> SpecialIds:
        """The ids that have a role."""

    @abc.abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, with U+FFFD for invalid UTF-8."""

    @functools.cached_property
    def vocab_size(self) -> int:
        return 1 + max((*self.entries.values(), *(token.id for token in self.added)), default=-1)

    def id_of(self, token: str) -> int | None:
        for added in self.added:
            if added.content == token:
                return added.id
        return self.entries.get(token)

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        """The entries by id, as the file spells them; '' for ids without one."""
        pieces = [''] * self.vocab_size
        for entry, id_ in self.entries.items():
            pieces[id_] = entry
        for token in self.added:
            pieces[token.id] = token.content
        return tuple(pieces)


@dataclass(frozen=True)
class BpeVocabulary(EntriesWithAddedTokens):
    """A tokenizer.json of BPE.

    Attributes:
        entries: ids by entry; byte-level ones as the file spells them, `Ġthe`.
        merges: (left, right) by rank.
        added: the added tokens.
        parts: the normalizer, the pre-tokenizer, the post-processor and the decoder.
        rules: what the model does with unknown characters and whole tokens.
    """

    entries: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    added: tuple[AddedToken, ...] = ()
    parts: TokenizerParts = field(default_factory=TokenizerParts.of)
    rules: ModelRules = ModelRules()

    @classmethod
    def learned(
        cls,
        entries: Iterable[str],
        merges: Iterable[tuple[str, str]],
        special_tokens: Iterable[str] = (),
        parts: TokenizerParts | None = None,
    ) -> BpeVocabulary:
        """Returns a learned vocabulary; entries are by id, the special tokens among them."""
        ids = {entry: id_ for id_, entry in enumerate(entries)}
        added = tuple(AddedToken(ids[token], token) for token in special_tokens)
        return cls(ids, tuple(merges), added, parts or TokenizerParts.of())

    @property
    def spelling(self) -> Spelling:
        return Spelling(self.parts.byte_level)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        # Only special tokens have a role by name: `UNK` may be ordinary text.
        named = {token.content: token.id for token in self.added if token.special}
        if self.rules.unk_token is not None and self.rules.unk_token in self.entries:
            named.setdefault('[UNK]', self.entries[self.rules.unk_token])
        return special_ids_by_name(named.get)

    @property
    def template(self) -> Template:
        """The ids that the post-processor adds to a row."""
        return self.parts.template

    @functools.cached_property
    def piece_bytes(self) -> tuple[bytes, ...]:
        """The text of each id in UTF-8."""
        pieces = [bytes_of(piece, self.parts.byte_level) for piece in self.pieces]
        for token in self.added:
            pieces[token.id] = token.content.encode('utf-8', 'surrogatepass')
        return tuple(pieces)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids; ids out of range have none."""
        pieces = self.piece_bytes
        return b''.join(pieces[id_] for id_ in ids if 0 <= id_ < len(pieces))

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, with U+FFFD for invalid UTF-8."""
        return self.decode_bytes(ids).decode('utf-8', 'replace')

    def dump(self) -> bytes:
        """Returns the file, as tokenizers 0.22 writes it."""
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
            {'id': token.id, 'content': token.content}
            | {flag: getattr(token, flag) for flag in FLAGS}
            for token in sorted(self.added, key=lambda token: token.id)
        ]
        file: dict[str, Any] = {'version': '1.0', 'truncation': None, 'padding': None}
        file |= {'added_tokens': added, **self.parts.components, 'model': model}
        return json.dumps(file, indent=2, ensure_ascii=False).encode('utf-8', 'surrogatepass')

    @functools.cached_property
    def model(self) -> MergeModel:
        from tokcore.bpe.model import MergeModel

        return MergeModel(
            self.merge_ids,
            self.units(),
            size=self.vocab_size,
            ignore_merges=self._unmerged() if self.rules.ignore_merges else None,
            ranks_of_results=self.rules.ranks_of_results,
            joins=self._joins(),
        )

    def _joins(self) -> Joins:
        """Returns where phrases are not cut: nowhere if symbols are characters, or bytes without one."""
        from tokcore.bpe.phrases import NO_CUTS, joins_of_tokens

        if not self.parts.byte_level or not self.entries.keys() >= CHARACTER_TO_BYTE.keys():
            return NO_CUTS
        if len({*self.entries.values()}) < len(self.entries):
            return NO_CUTS  # a symbol stands for two tokens
        tokens, sizes, _ = self._spelled
        return joins_of_tokens(tokens, sizes)

    @functools.cached_property
    def _spelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return spelled_tokens(self.entries)

    @functools.cached_property
    def merge_ids(self) -> np.ndarray:
        """int32[merges, 3]: the ids of both parts and of the result of each merge, by rank."""
        import numpy as np  # the declaration of a scheme, which imports this module, is without it

        id_of, count = self.entries.__getitem__, len(self.merges)
        columns = (
            (left for left, _ in self.merges),
            (right for _, right in self.merges),
            map(''.join, self.merges),
        )
        ids = [np.fromiter(map(id_of, column), np.int32, count) for column in columns]
        return np.stack(ids, axis=1)

    def knows_merge_ids(self, ids: np.ndarray) -> BpeVocabulary:
        """Sets `merge_ids`, for a caller that has them already; returns the vocabulary."""
        self.__dict__['merge_ids'] = ids
        return self

    def _unmerged(self) -> TokenLookup:
        """Returns the ids of tokens that are entries."""
        import numpy as np

        from tokcore.kernels.hash_tables import token_lookup, token_lookup_of

        if not self.parts.byte_level:
            return token_lookup(
                {entry.encode('utf-8', 'surrogatepass'): id_ for entry, id_ in self.entries.items()}
            )
        data, sizes, are_tokens = self._spelled
        ids = np.fromiter(self.entries.values(), np.int64, len(self.entries))
        return token_lookup_of(data, sizes, ids[are_tokens])

    def units(self) -> Units:
        """Returns the symbols of bytes or characters."""
        import numpy as np

        from tokcore.bpe.model import premerged_characters
        from tokcore.bpe.model_kernels import NONE, Units
        from tokcore.kernels.jit import read_only
        from tokcore.text.unicode import CODE_POINTS

        ids = self.entries
        if self.parts.byte_level:
            alphabet = [BYTE_TO_CHARACTER[byte] for byte in range(256)]
            symbols = np.array([ids.get(character, -1) + 1 for character in alphabet], np.int32)
            characters = np.array([ord(character) for character in alphabet], np.uint32)
            premerged = premerged_characters(
                self._multibyte_characters(), symbols.tolist(), self.merge_ids
            )
        else:
            symbols = np.zeros(CODE_POINTS, np.int32)
            single = {ord(entry): id_ for entry, id_ in ids.items() if len(entry) == 1}
            symbols[list(single)] = np.array(list(single.values()), np.int32) + 1
            characters, premerged = np.empty(0, np.uint32), np.empty(0, np.int32)
        fallback = np.full(256, NONE, np.int32)
        if self.rules.byte_fallback:
            fallback[:] = [ids.get(f'<0x{byte:02X}>', NONE) for byte in range(256)]
        unknown = NONE if self.rules.unk_token is None else ids.get(self.rules.unk_token, NONE)
        return Units(
            read_only(symbols),
            read_only(characters),
            read_only(premerged),
            read_only(fallback),
            unknown,
            int(self.rules.fuse_unk),
        )

    def _multibyte_characters(self) -> dict[int, bytes]:
        """Returns the code points, and the UTF-8, of entries that are one character of 2 to 4 bytes."""
        characters = {}
        for entry in self.entries:
            utf8 = bytes_of(entry) if 2 <= len(entry) <= 4 else b''
            if utf8 and utf8[0] >= 0xC0:
                text = utf8.decode('utf-8', 'replace')
                if len(text) == 1 and text.encode() == utf8:
                    characters[ord(text)] = utf8
        return characters


def bytes_of(piece: str, byte_level: bool = True) -> bytes:
    """Returns the text of an entry in UTF-8.

    A byte-level entry with characters other than those of bytes, as a special token, is text itself.
    """
    if not byte_level:
        return piece.encode('utf-8', 'surrogatepass')
    try:
        return bytes(map(CHARACTER_TO_BYTE.__getitem__, piece))
    except KeyError:
        return piece.encode('utf-8', 'surrogatepass')


def parse_parts(file: Mapping[str, Any], path: str) -> TokenizerParts:
    """Returns the parts of a tokenizer.json.

    Raises:
        InputError: a part is not supported; the error names the first one and its JSON path.
    """
    form = _form(file.get('normalizer'), path, '$.normalizer')
    patterns, byte_level, prefix = _patterns(file.get('pre_tokenizer'), path, '$.pre_tokenizer')
    _check_decoder(file.get('decoder'), byte_level, path, '$.decoder')
    template = parse_template(file.get('post_processor'), path, '$.post_processor')
    names = ('normalizer', 'pre_tokenizer', 'post_processor', 'decoder')
    components = {name: file.get(name) for name in names}
    return TokenizerParts(patterns, byte_level, form, prefix, template, components)


def report_ignored(file: Mapping[str, Any], path: str) -> None:
    """Logs that a tokenizer.json has `truncation` or `padding`, which transformers does not apply either."""
    names = [name for name in ('truncation', 'padding') if file.get(name) is not None]
    if names:
        message = '%s: ignored %s, as AutoTokenizer does; rows keep all of their ids'
        _LOGGER.warning(message, path, ' and '.join(names))


def refuse(path: str, place: str, what: str) -> typing.NoReturn:
    """Raises the InputError for a component that is not supported."""
    raise InputError(
        f'{path}: {what} at {place} is not supported, and text would have other ids without it; '
        'give a vocabulary without it, or encode with the tokenizers that it was made for'
    )


def expression_tree(expression: str, path: str, place: str) -> Tree:
    """Returns the tree of a regular expression of a tokenizer.json.

    Raises:
        InputError: it has something that is not known; the error says at which character.
    """
    try:
        return oniguruma(expression)
    except ExpressionError as error:
        refuse(path, place, f'the regular expression {expression!r:.200}, with {error},')


def _cutting(pattern: str) -> Iterator[dict[str, Any]]:
    """Yields the JSON of the pre-tokenizers that cut texts by a pattern."""
    if pattern in DIGITS.values():
        yield {'type': 'Digits', 'individual_digits': pattern == DIGITS[True]}
        return
    isolated = {'behavior': 'Isolated', 'invert': False}
    for expression in expressions_of([pattern]):
        yield {'type': 'Split', 'pattern': {'Regex': expression}, **isolated}


def part_type(part: Any, path: str, place: str) -> str:
    """Returns the type of a part of a tokenizer.json; raises InputError if it has none."""
    if not isinstance(part, dict) or not isinstance(part.get('type'), str):
        raise InputError(f'{path}: {place} has no "type"; give a whole tokenizer.json')
    return part['type']


def flattened(part: Any, members: str, path: str, place: str) -> list[tuple[Any, str]]:
    """Returns the parts of a sequence, or the part itself, with their JSON paths."""
    if part is None:
        return []
    if part_type(part, path, place) != 'Sequence':
        return [(part, place)]
    parts = part.get(members)
    if not isinstance(parts, list):
        raise InputError(f'{path}: {place} has no "{members}"; give a whole tokenizer.json')
    return [
        flat
        for index, member in enumerate(parts)
        for flat in flattened(member, members, path, f'{place}.{members}[{index}]')
    ]


def _form(part: Any, path: str, place: str) -> Form | None:
    form: Form | None = None
    for normalizer, where in flattened(part, 'normalizers', path, place):
        kind = part_type(normalizer, path, where)
        if kind not in _FORMS or form is not None:
            refuse(path, where, f'the normalizer {kind}')
        form = _FORMS[kind]
    return form


def _patterns(part: Any, path: str, place: str) -> tuple[tuple[str, ...], bool, bool]:
    """Returns the patterns, whether symbols are bytes, and whether a space is prepended."""
    if part is None:
        refuse(path, place, 'a model without a pre-tokenizer')
    expressions: list[str] = []
    byte_level = prefix = False
    for pre_tokenizer, where in flattened(part, 'pretokenizers', path, place):
        kind = part_type(pre_tokenizer, path, where)
        if kind == 'Split' and not byte_level:
            expressions.append(_expression(pre_tokenizer, path, where))
        elif kind == 'Digits' and not byte_level:
            expressions.append(DIGITS[bool(pre_tokenizer.get('individual_digits'))])
        elif kind == 'ByteLevel' and not byte_level:
            byte_level = True
            prefix = pre_tokenizer.get('add_prefix_space', True)
            if prefix and expressions:
                refuse(path, where, 'ByteLevel with a prefix after another pre-tokenizer')
            if pre_tokenizer.get('use_regex', True):
                expressions += DEFINITIONS['gpt2'].expressions
        else:
            refuse(path, where, f'the pre-tokenizer {kind}')
    if not expressions and not byte_level:
        refuse(path, place, 'a model whose pre-tokenizer does not split text')
    return patterns_of(expressions), byte_level, prefix


def _expression(part: Mapping[str, Any], path: str, place: str) -> str:
    pattern = part.get('pattern')
    text = pattern.get('Regex') if isinstance(pattern, dict) else None
    if not isinstance(text, str):
        refuse(path, f'{place}.pattern', f'the pattern {pattern!r:.200}')
    tree = expression_tree(text, path, f'{place}.pattern')
    behavior = part.get('behavior'), part.get('invert', False)
    # Patterns of one expression match every character, so both keep the matches and nothing else.
    is_removed = behavior == ('Removed', True) and named_pattern([tree])
    if behavior != ('Isolated', False) and not is_removed:
        refuse(path, f'{place}.behavior', f'the pre-tokenizer Split with {part.get("behavior")}')
    return text


def _check_decoder(part: Any, byte_level: bool, path: str, place: str) -> None:
    for decoder, where in flattened(part, 'decoders', path, place):
        kind = part_type(decoder, path, where)
        if kind != ('ByteLevel' if byte_level else 'Fuse'):
            refuse(path, where, f'the decoder {kind}')


def parse_template(part: Any, path: str, place: str) -> Template:
    """Returns the ids that a post-processor puts around a row; raises InputError if it is unknown."""
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    for processor, where in flattened(part, 'processors', path, place):
        kind = part_type(processor, path, where)
        if kind == 'ByteLevel':
            continue
        if kind == 'TemplateProcessing':
            outer = _processing_template(processor, path, where)
        elif kind in ('RobertaProcessing', 'BertProcessing'):
            start, end = (_pair_id(processor.get(key), path, where) for key in ('cls', 'sep'))
            outer = Template((start,), (end,))
        else:
            refuse(path, where, f'the post-processor {kind}')
        before, after = outer.before + before, after + outer.after
    return Template(before, after)


def _pair_id(pair: Any, path: str, place: str) -> int:
    if isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int:
        return pair[1]
    raise InputError(f'{path}: {place} has no token with its id; give a whole tokenizer.json')


def _processing_template(part: Mapping[str, Any], path: str, place: str) -> Template:
    sides: list[list[int]] = [[]]
    pieces = part.get('single')
    for number, piece in enumerate(pieces if isinstance(pieces, list) else []):
        where = f'{place}.single[{number}]'
        match piece:
            case {'Sequence': {'id': 'A'}} if len(sides) == 1:
                sides.append([])
            case {'SpecialToken': {'id': str(name)}}:
                sides[-1] += _ids_of(part.get('special_tokens'), name, path, place)
            case _:
                refuse(path, where, 'this piece of a template')
    if len(sides) != 2:
        refuse(path, f'{place}.single', 'a template without $A')
    return Template(*map(tuple, sides))


def _ids_of(tokens: Any, name: str, path: str, place: str) -> Sequence[int]:
    match tokens:
        case {**by_name} if name in by_name:
            match by_name[name]:
                case {'ids': list(ids)} if all(type(id_) is int for id_ in ids):
                    return ids
    raise InputError(
        f'{path}: {place}.special_tokens has no ids of {name!r}; give a whole tokenizer.json'
    )
