"""The parts of a tokenizer.json beside its model: which of them mean what is done here.

What is not understood whole is refused, by its name and its place in the file, and never taken for
something like it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokcore.encoding.templates import NO_TEMPLATE, Template
from tokcore.errors import InputError

PATTERNS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": 'gpt2',
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": 'gpt2',
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s": 'cl100k',
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
