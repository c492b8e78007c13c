"""The decoders of a tokenizer.json: steps that make strings of the strings of tokens."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from tokcore.bpe.vocabulary import expression_tree, flattened, part_type, refuse
from tokcore.pretrained.vocabulary import JoinTokens
from tokcore.text.byte_level import CHARACTER_TO_BYTE
from tokcore.text.regex_splits import replacing

_BYTE = re.compile(r'<0x([0-9A-Fa-f]{2})>')

_WITHOUT_SPACE = (
    (' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"),
    (" 're", "'re"),
)  # fmt: skip


def decoder_steps(part: Any, byte_level: bool, path: str, place: str) -> tuple[JoinTokens, ...]:
    """Returns the steps of a decoder, in their order; without one, tokens are joined by spaces.

    Raises:
        InputError: one of them is not supported.
    """
    steps = [
        _step(member, path, where) for member, where in flattened(part, 'decoders', path, place)
    ]
    return tuple(steps) if part is not None else (_spaced,)


def _step(part: Mapping[str, Any], path: str, where: str) -> JoinTokens:
    kind = part_type(part, path, where)
    match kind:
        case 'ByteLevel':
            return _byte_level
        case 'ByteFallback':
            return _byte_fallback
        case 'Fuse':
            return lambda tokens: [''.join(tokens)]
        case 'Replace':
            content = str(part.get('content'))
            match part.get('pattern'):
                case {'String': str(text)}:
                    return lambda tokens: [token.replace(text, content) for token in tokens]
                case {'Regex': str(expression)}:
                    replaced = replacing(expression_tree(expression, path, where), content)
                    return lambda tokens: [*map(replaced, tokens)]
        case 'Strip':
            start, stop = part.get('start', 0), part.get('stop', 0)
            for name, number in (('start', start), ('stop', stop)):
                if type(number) is not int or number < 0:
                    refuse(path, f'{where}.{name}', f'{number!r:.80} for a number')
            values = str(part.get('content', ' ')), start, stop
            return functools.partial(_stripped, values=values)
        case 'Metaspace':
            mark = str(part.get('replacement', '▁'))
            scheme = part.get('prepend_scheme', 'always')
            return functools.partial(_marks, mark=mark, drops_first=scheme != 'never')
        case 'WordPiece':
            prefix = str(part.get('prefix', '##'))
            return functools.partial(
                _wordpiece, prefix=prefix, cleans=bool(part.get('cleanup', True))
            )
    refuse(path, where, f'the decoder {kind}')


def _spaced(tokens: list[str]) -> list[str]:
    return [' '.join(tokens)]


def _byte_level(tokens: list[str]) -> list[str]:
    data = b''.join(
        bytes(CHARACTER_TO_BYTE[character] for character in token)
        if all(character in CHARACTER_TO_BYTE for character in token)
        else token.encode('utf-8', 'surrogatepass')
        for token in tokens
    )
    return [data.decode('utf-8', 'replace')]


def _byte_fallback(tokens: list[str]) -> list[str]:
    joined: list[str] = []
    pending = bytearray()

    def flush() -> None:
        try:
            joined.extend([pending.decode()] if pending else [])
        except UnicodeDecodeError:
            joined.extend('�' * len(pending))
        pending.clear()

    for token in tokens:
        match = _BYTE.fullmatch(token)
        if match:
            pending.append(int(match[1], 16))
        else:
            flush()
            joined.append(token)
    flush()
    return joined


def _stripped(tokens: list[str], values: tuple[str, int, int]) -> list[str]:
    content, start, stop = values
    stripped = []
    for token in tokens:
        first, last = 0, len(token)
        while first < min(start, len(token)) and token[first] == content:
            first += 1
        while last > max(first, len(token) - stop) and token[last - 1] == content:
            last -= 1
        stripped.append(token[first:last])
    return stripped


def _marks(tokens: list[str], mark: str, drops_first: bool) -> list[str]:
    spaced = [token.replace(mark, ' ') for token in tokens]
    if spaced and drops_first and tokens[0].startswith(mark):
        spaced[0] = spaced[0][1:]
    return spaced


def _wordpiece(tokens: list[str], prefix: str, cleans: bool) -> list[str]:
    joined = []
    for number, token in enumerate(tokens):
        if number:
            token = token.removeprefix(prefix) if token.startswith(prefix) else f' {token}'
        if cleans:
            for spaced, without in _WITHOUT_SPACE:
                token = token.replace(spaced, without)
        joined.append(token)
    return joined
