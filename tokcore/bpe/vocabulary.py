"""A vocabulary of byte pair encoding: entries with ids, merges, and the parts of a tokenizer.json.

A part that is not fully understood is refused, by its name and its place in the file.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template, special_ids_by_name
from tokcore.errors import InputError
from tokcore.text.byte_level import BYTE_TO_CHARACTER

FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
"""Of an added token, as files name them."""

_CHARACTER_TO_BYTE = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)}

PATTERNS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": 'gpt2',
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": 'gpt2',
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r'|\s++$|\s*[\r\n]|\s+(?!\S)|\s': 'cl100k',
}
r"""By regular expression the pattern that it is for `tokenizers`.

Others that look like cl100k's are not: tiktoken writes `\p{N}{1,3}+`, of which Oniguruma makes runs
of any number of digits, and what OpenAI wrote before cuts white space at the end of a text
otherwise if there is a line break in it.
"""

SPLIT_PATTERNS = {name: pattern for pattern, name in PATTERNS.items() if name == 'cl100k'}
"""By name the expression that is written for patterns that are none of ByteLevel's own."""

_FORMS = ('NFC', 'NFKC')

_BYTE_LEVEL: Mapping[str, object] = {
    'type': 'ByteLevel',
    'add_prefix_space': False,
    'trim_offsets': True,
    'use_regex': True,
}


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
class TokenizerParts:
    """What stands around the model.

    Attributes:
        pattern: 'gpt2' or 'cl100k': what cuts text into tokens.
        byte_level: whether symbols are of bytes, or else of characters.
        form: of Unicode that text is brought into first, 'NFC' or 'NFKC', or None.
        add_prefix_space: whether a text that does not begin with a space is given one.
        template: what is put around the ids of a row.
        components: normalizer, pre_tokenizer, post_processor and decoder as the file has them.
    """

    pattern: str = 'gpt2'
    byte_level: bool = True
    form: str | None = None
    add_prefix_space: bool = False
    template: Template = NO_TEMPLATE
    components: Mapping[str, object] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, pattern: str = 'gpt2', form: str | None = None) -> TokenizerParts:
        """Returns the parts of byte-level BPE with this pattern."""
        return cls(pattern, form=form, components=_written(pattern, form))


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
            {'id': each.id, 'content': each.content} | {flag: getattr(each, flag) for flag in FLAGS}
            for each in sorted(self.added, key=lambda token: token.id)
        ]
        file = {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added}
        file |= {**self.parts.components, 'model': model}
        return json.dumps(file, indent=2, ensure_ascii=False).encode('utf-8', 'surrogatepass')

    @functools.cached_property
    def model(self):
        from tokcore.bpe.model import MergeModel, merge_numbers
        from tokcore.kernels.jit import read_only

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
        from tokcore.bpe.model import whole_characters
        from tokcore.bpe.model_kernels import NONE, Units
        from tokcore.kernels.jit import read_only
        from tokcore.text.unicode import CODE_POINTS

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


def parse_parts(file: Mapping[str, object], path: str) -> TokenizerParts:
    """Returns the parts of a tokenizer.json.

    Raises:
        InputError: naming the first part that has no counterpart here, and its place.
    """
    for name in ('truncation', 'padding'):
        if file.get(name) is not None:
            refuse(path, f'$.{name}', name)
    form = _form(file.get('normalizer'), path, '$.normalizer')
    pattern, byte_level, prefix = _pattern(file.get('pre_tokenizer'), path, '$.pre_tokenizer')
    _check_decoder(file.get('decoder'), byte_level, path, '$.decoder')
    template = _template(file.get('post_processor'), path, '$.post_processor')
    names = ('normalizer', 'pre_tokenizer', 'post_processor', 'decoder')
    components = {name: file.get(name) for name in names}
    return TokenizerParts(pattern, byte_level, form, prefix, template, components)


def refuse(path: str, place: str, what: str) -> typing.NoReturn:
    """Raises the InputError about a component that is not supported."""
    raise InputError(
        f'{path}: {what} at {place} is not supported, and text would have other ids without it; '
        'give a vocabulary without it, or encode with the tokenizers that it was made for'
    )


def _written(pattern: str, form: str | None) -> dict[str, object]:
    """The JSON of parts that are not from a file."""
    pre_tokenizer: object = dict(_BYTE_LEVEL)
    if pattern in SPLIT_PATTERNS:
        split = {
            'type': 'Split',
            'pattern': {'Regex': SPLIT_PATTERNS[pattern]},
            'behavior': 'Isolated',
            'invert': False,
        }
        pre_tokenizer = {
            'type': 'Sequence',
            'pretokenizers': [split, {**_BYTE_LEVEL, 'use_regex': False}],
        }
    return {
        'normalizer': None if form is None else {'type': form},
        'pre_tokenizer': pre_tokenizer,
        'post_processor': None,
        'decoder': dict(_BYTE_LEVEL),
    }


def _type(part: object, path: str, place: str) -> str:
    if not isinstance(part, dict) or not isinstance(part.get('type'), str):
        raise InputError(f'{path}: {place} has no "type"; give a whole tokenizer.json')
    return part['type']


def _flattened(part: object, members: str, path: str, place: str) -> list[tuple[object, str]]:
    """The parts of a sequence, or the one that it is, with their places."""
    if part is None:
        return []
    if _type(part, path, place) != 'Sequence':
        return [(part, place)]
    parts = part.get(members)
    if not isinstance(parts, list):
        raise InputError(f'{path}: {place} has no "{members}"; give a whole tokenizer.json')
    return [
        one
        for number, each in enumerate(parts)
        for one in _flattened(each, members, path, f'{place}.{members}[{number}]')
    ]


def _form(part: object, path: str, place: str) -> str | None:
    found = None
    for each, where in _flattened(part, 'normalizers', path, place):
        kind = _type(each, path, where)
        if kind not in _FORMS or found is not None:
            refuse(path, where, f'the normalizer {kind}')
        found = kind
    return found


def _pattern(part: object, path: str, place: str) -> tuple[str, bool, bool]:
    """The name of the pattern, whether bytes are symbols, and whether a space is prepended."""
    if part is None:
        refuse(path, place, 'a model without a pre-tokenizer')
    found = []
    byte_level = prefix = False
    for each, where in _flattened(part, 'pretokenizers', path, place):
        kind = _type(each, path, where)
        if kind == 'Split' and not found and not byte_level:
            found.append(_split_pattern(each, path, where))
        elif kind == 'ByteLevel' and not byte_level:
            byte_level = True
            prefix = each.get('add_prefix_space', True)
            if each.get('use_regex', True):
                if found:
                    refuse(path, where, 'the pre-tokenizer ByteLevel with use_regex behind a Split')
                found.append('gpt2')
            elif prefix:
                refuse(path, where, 'the pre-tokenizer ByteLevel with a prefix behind a Split')
        else:
            refuse(path, where, f'the pre-tokenizer {kind}')
    if not found:
        refuse(path, place, 'a model whose pre-tokenizer does not cut text')
    return found[0], byte_level, prefix


def _split_pattern(part: Mapping[str, object], path: str, place: str) -> str:
    pattern = part.get('pattern')
    text = pattern.get('Regex') if isinstance(pattern, dict) else None
    if text not in PATTERNS:
        refuse(path, f'{place}.pattern', f'the pattern {pattern!r:.200}')
    # The patterns match every character, so to keep the matches is to cut at them.
    if (part.get('behavior'), part.get('invert', False)) not in (
        ('Isolated', False),
        ('Removed', True),
    ):
        refuse(path, f'{place}.behavior', f'the pre-tokenizer Split with {part.get("behavior")}')
    return PATTERNS[text]


def _check_decoder(part: object, byte_level: bool, path: str, place: str) -> None:
    for each, where in _flattened(part, 'decoders', path, place):
        kind = _type(each, path, where)
        if kind != ('ByteLevel' if byte_level else 'Fuse'):
            refuse(path, where, f'the decoder {kind}')


def _template(part: object, path: str, place: str) -> Template:
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    for each, where in _flattened(part, 'processors', path, place):
        kind = _type(each, path, where)
        if kind == 'ByteLevel':
            continue
        if kind == 'TemplateProcessing':
            more = _processing_template(each, path, where)
        elif kind in ('RobertaProcessing', 'BertProcessing'):
            more = Template(*((_pair_id(each.get(key), path, where),) for key in ('cls', 'sep')))
        else:
            refuse(path, where, f'the post-processor {kind}')
        before, after = more.before + before, after + more.after
    return Template(before, after)


def _pair_id(pair: object, path: str, place: str) -> int:
    if isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int:
        return pair[1]
    raise InputError(f'{path}: {place} has no token with its id; give a whole tokenizer.json')


def _processing_template(part: Mapping[str, object], path: str, place: str) -> Template:
    around: list[list[int]] = [[]]
    pieces = part.get('single')
    for number, piece in enumerate(pieces if isinstance(pieces, list) else []):
        where = f'{place}.single[{number}]'
        match piece:
            case {'Sequence': {'id': 'A'}} if len(around) == 1:
                around.append([])
            case {'SpecialToken': {'id': str(name)}}:
                around[-1] += _ids_of(part.get('special_tokens'), name, path, place)
            case _:
                refuse(path, where, 'this piece of a template')
    if len(around) != 2:
        refuse(path, f'{place}.single', 'a template without $A')
    return Template(*map(tuple, around))


def _ids_of(tokens: object, name: str, path: str, place: str) -> Sequence[int]:
    match tokens:
        case {**known} if name in known:
            match known[name]:
                case {'ids': list(ids)} if all(type(each) is int for each in ids):
                    return ids
    raise InputError(
        f'{path}: {place}.special_tokens has no ids of {name!r}; give a whole tokenizer.json'
    )
