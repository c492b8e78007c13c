r"""Regular expressions as trees, without a dialect, and as the package `regex` takes them.

Letters in either case are classes, and so is a dot; `\b` and `^` are what must be around them. So equal
trees match the same text, and `regex` needs none of its flags. Properties are those of Unicode 16, which
the engines have, whatever `regex` is installed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import and_, invert, or_
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import regex


@dataclass(frozen=True)
class Class:
    """A class of characters, one of which is matched.

    Attributes:
        kind: what it is made of: ranges of code points, each by its first and last, in order and apart;
            a property, by the name that `regex` has for it; or classes.
        of: that.
    """

    kind: Literal['ranges', 'property', 'union', 'intersection', 'complement']
    of: Any

    def __or__(self, other: Class) -> Class:
        flat = {
            one for each in (self, other) for one in (each.of if each.kind == 'union' else (each,))
        }
        pairs = [pair for each in flat if each.kind == 'ranges' for pair in each.of]
        members = {each for each in flat if each.kind != 'ranges'}
        members |= {ranges(*pairs)} if pairs else set()
        # `regex` would match all characters with the complement of such a union.
        if ANY in members or any(~each in members for each in members):
            return ANY
        return members.pop() if len(members) == 1 else Class('union', frozenset(members))

    def __and__(self, other: Class) -> Class:
        both = frozenset([self, other])
        return Class('intersection', both) if len(both) == 2 else self

    def __invert__(self) -> Class:
        return self.of if self.kind == 'complement' else Class('complement', self)


@dataclass(frozen=True)
class Node:
    """What is not a class.

    | kind | of |
    | --- | --- |
    | sequence | trees, one after the other |
    | choice | trees, of which the first one is taken with which all matches |
    | repeat | a tree, how many times it is there at least and at most (None: any number), whether as seldom as it goes |
    | atomic | a tree of which only the first match is taken |
    | look | a tree, whether it has to be behind and not to follow, whether it must not be there |
    | group | a tree whose text may be referred to |
    | reference | the number of a group, the first of which is 1 |
    | place | `A`, the start of the text, `Z`, its end, or `G`, where the search began |
    """

    kind: str
    of: tuple[Any, ...]


Tree: TypeAlias = Class | Node

ANY = Class('ranges', ((0, 0x10FFFF),))

_PROPERTY = re.compile(r'\\\\|\\([pP])\{([^}]+)\}')


def ranges(*pairs: tuple[int, int]) -> Class:
    """Returns the class of the characters from the first to the last of each pair."""
    apart: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if apart and first <= apart[-1][1] + 1:
            apart[-1] = apart[-1][0], max(last, apart[-1][1])
        else:
            apart.append((first, last))
    return Class('ranges', tuple(apart))


def characters(codes: Iterable[int]) -> Class:
    """Returns the class of some characters."""
    return ranges(*((code, code) for code in codes))


def joined(kind: Literal['sequence', 'choice'], trees: Iterable[Tree]) -> Tree:
    """Returns a sequence or a choice; of one tree, that tree."""
    flat = [one for tree in trees for one in (tree.of if tree.kind == kind else (tree,))]
    return flat[0] if len(flat) == 1 else Node(kind, tuple(flat))


def without_last_atoms(tree: Tree) -> Tree:
    """Returns a whole expression without the atomic parts after which nothing could ask for another match."""
    match tree:
        case Node('sequence', (*parts, last)):
            return joined('sequence', [*parts, without_last_atoms(last)])
        case Node('choice', options):
            return joined('choice', map(without_last_atoms, options))
        case Node('atomic', (of,)):
            return without_last_atoms(of)
    return tree


def may_be_empty(tree: Tree) -> bool:
    """Whether a tree may match without taking a character."""
    match tree:
        case Node('sequence', parts):
            return all(map(may_be_empty, parts))
        case Node('choice', options):
            return any(map(may_be_empty, options))
        case Node('repeat', (of, least, *_)):
            return not least or may_be_empty(of)
        case Node('atomic' | 'group', (of,)):
            return may_be_empty(of)
    return isinstance(tree, Node)


def leaves_text(tree: Tree) -> bool:
    """Whether there may be characters that a tree does not match, wherever they are."""
    alone = _alone(tree)
    everything = ''.join(map(chr, range(0x110000)))
    return not alone or compiled(~functools.reduce(or_, alone)).search(everything) is not None


def _alone(tree: Tree) -> list[Class]:
    """Returns classes of which a tree matches each character by itself, whatever is around it."""
    match tree:
        case Class():
            return [tree]
        case Node('choice', options):
            return [each for option in options for each in _alone(option)]
        case Node('repeat', (of, 0 | 1, *_)) | Node('atomic' | 'group', (of,)):
            return _alone(of)
        case Node('sequence', parts):
            needed = [n for n, part in enumerate(parts) if not _is_optional(part)]
            if len(needed) == 1:
                # What an atomic part takes, it does not give back.
                atoms = [part for part in parts[: needed[0]] if part.kind == 'atomic']
                taken = [each for atom in atoms for each in _alone(atom)]
                return [
                    functools.reduce(and_, map(invert, taken), each)
                    for each in _alone(parts[needed[0]])
                ]
    return []


def _is_optional(part: Tree) -> bool:
    of = part.of[0] if part.kind == 'atomic' else part
    return of.kind == 'repeat' and not of.of[1]


@functools.lru_cache(256)
def compiled(tree: Tree) -> regex.Pattern[str]:
    """Returns a tree as `regex` searches for it."""
    return compiled_expression(spelled(tree))


def compiled_for(text: str, expression: str) -> regex.Pattern[str]:
    """Returns an expression, as `spelled` makes them, as `regex` searches for it in a text."""
    # The properties of Unicode 16 take twice the time of all that `regex` has.
    return compiled_expression(expression, not text.isascii() and bool(_rare().search(text)))


@functools.lru_cache(256)
def compiled_expression(expression: str, is_limited: bool = True) -> regex.Pattern[str]:
    """Returns an expression as `regex` searches for it, whose properties are limited to Unicode 16."""
    import regex

    limited = _PROPERTY.sub(_of_unicode_16, expression) if is_limited else expression
    return regex.compile(limited, regex.VERSION1)


def _of_unicode_16(found: re.Match[str]) -> str:
    newer = _newer_characters()
    if not found[1] or not newer:
        return found[0]
    has_newer = (found[1] == 'P') != (found[2] == 'Cn')
    return f'[{found[0]}{"" if has_newer else "--"}[{newer}]]'


@functools.cache
def _rare() -> re.Pattern[str]:
    """Finds newer characters, and more beyond U+FFFF, where exact ranges would take long."""
    return re.compile(f'[{_newer_characters()}\U00010000-\U0010ffff]')


@functools.cache
def _newer_characters() -> str:
    """Returns what Unicode 16 does not know and the installed `regex` knows, as ranges between brackets."""
    import numpy as np
    import regex

    from tokcore.text.unicode import NEWER, age_table

    text = np.flatnonzero(age_table() == NEWER).astype('<u4').tobytes().decode('utf-32-le')
    return _between_brackets(characters(map(ord, regex.findall(r'\P{Cn}', text))))


def spelled(tree: Tree) -> str:
    r"""Returns a tree as an expression that `regex` takes for it in its mode VERSION1.

    >>> spelled(joined('choice', [Class('property', 'L'), Node('place', ('Z',)), characters([0x2B])]))
    '\\p{L}|\\Z|\\+'
    """
    match tree:
        case Class('ranges', ((first, last),)) if first == last:
            return _escaped(first)
        case Class('property'):
            return _between_brackets(tree)
        case Class('complement', Class('property') as of):
            return spelled(of)[0] + spelled(of)[1].upper() + spelled(of)[2:]
        case Class('complement', of):
            return f'[^{_between_brackets(of)}]'
        case Class():
            return f'[{_between_brackets(tree)}]'
        case Node('sequence', parts):
            return ''.join(
                _enclosed(part) if part.kind == 'choice' else spelled(part) for part in parts
            )
        case Node('choice', options):
            return '|'.join(map(spelled, options))
        case Node('repeat', (of, least, most, is_lazy)):
            times = {(0, 1): '?', (0, None): '*', (1, None): '+', (least, least): f'{{{least}}}'}
            other = f'{{{least},{"" if most is None else most}}}'
            is_one = isinstance(of, Class) or of.kind in ('group', 'reference')
            repeated = spelled(of) if is_one else _enclosed(of)
            return repeated + times.get((least, most), other) + '?' * is_lazy
        case Node('atomic', (Node('repeat', (*_, False)) as repeat,)):
            return f'{spelled(repeat)}+'
        case Node('look', (of, is_behind, is_negated)):
            return f'(?{"<" * is_behind}{"!" if is_negated else "="}{spelled(of)})'
    [of] = tree.of
    match tree.kind:
        case 'atomic':
            return f'(?>{spelled(of)})'
        case 'group':
            return f'({spelled(of)})'
        case 'reference':
            return rf'(?:\{of})'
    return f'\\{of}'


def _enclosed(tree: Tree) -> str:
    return f'(?:{spelled(tree)})'


def _between_brackets(tree: Class) -> str:
    match tree.kind:
        case 'ranges':
            ends = [(_escaped(first), _escaped(last)) for first, last in tree.of]
            return ''.join(first if first == last else f'{first}-{last}' for first, last in ends)
        case 'property':
            return r'\s' if tree.of == 'White_Space' else rf'\p{{{tree.of}}}'
        case 'union':
            return ''.join(sorted(map(_between_brackets, tree.of)))
        case 'intersection':
            return '[' + '&&'.join(sorted(f'[{_between_brackets(each)}]' for each in tree.of)) + ']'
    return spelled(tree)


def _escaped(code: int) -> str:
    character = chr(code)
    if character.isalnum() or character == ' ':
        return character
    if 0x20 < code < 0x7F:
        return f'\\{character}' if character in r'\.^$*+?{}[]()|-&~:#' else character
    return character.encode('unicode_escape').decode()
