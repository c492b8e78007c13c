r"""Regular expressions as trees, without a dialect, and as the package `regex` takes them.

Letters in either case are classes, and so is a dot; `\b` and `^` are what must be around them. So equal
trees match the same text, and `regex` needs none of its flags.
"""

from __future__ import annotations

import functools
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
        # Of the complement of such a union, `regex` would take all characters.
        if ANY in members or any(~each in members for each in members):
            return ANY
        return members.pop() if len(members) == 1 else Class('union', frozenset(members))

    def __and__(self, other: Class) -> Class:
        both = frozenset([self, other])
        return Class('intersection', both) if len(both) == 2 else self

    def __invert__(self) -> Class:
        return self.of if self.kind == 'complement' else Class('complement', self)


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


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    """The first part with which all matches."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """A tree several times, as often as it goes, or as seldom; `most` is None for any number."""

    of: Tree
    least: int
    most: int | None
    is_lazy: bool = False


@dataclass(frozen=True)
class Atomic:
    """The first match of a tree, and no other one."""

    of: Tree


@dataclass(frozen=True)
class Look:
    """What has to follow, or to be behind."""

    of: Tree
    is_behind: bool = False
    is_negated: bool = False


@dataclass(frozen=True)
class Group:
    """A tree to whose text a `Reference` may refer, by how many groups begin before it."""

    of: Tree


@dataclass(frozen=True)
class Reference:
    """The text of a group, the first of which is 1."""

    number: int


@dataclass(frozen=True)
class Place:
    """The start of the text (`A`), its end (`Z`), or where the search began (`G`)."""

    name: str


Tree: TypeAlias = Class | Sequence | Choice | Repeat | Atomic | Look | Group | Reference | Place

ANY = Class('ranges', ((0, 0x10FFFF),))

_SPELLED = {
    'White_Space': r'\s',
    # Unicode 17 made U+0295 a letter without case. Both engines have Unicode 16.
    'Ll': r'\p{Ll}ʕ',
    'Lo': r'[\p{Lo}--ʕ]',
    'Lowercase': r'\p{Lowercase}ʕ',
}


def joined(kind: type[Sequence] | type[Choice], parts: Iterable[Tree]) -> Tree:
    """Returns a sequence or a choice; of one part, that part."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, kind) else (part,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def may_be_empty(tree: Tree) -> bool:
    """Whether a tree may match without taking a character."""
    match tree:
        case Sequence(parts):
            return all(map(may_be_empty, parts))
        case Choice(parts):
            return any(map(may_be_empty, parts))
        case Repeat(of, least):
            return not least or may_be_empty(of)
        case Atomic(of) | Group(of):
            return may_be_empty(of)
    return not isinstance(tree, Class)


def without_last_atoms(tree: Tree) -> Tree:
    """Returns a whole expression without the atomic parts after which nothing could ask for another match."""
    match tree:
        case Sequence((*parts, last)):
            return joined(Sequence, [*parts, without_last_atoms(last)])
        case Choice(parts):
            return joined(Choice, map(without_last_atoms, parts))
        case Atomic(of):
            return without_last_atoms(of)
    return tree


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
        case Choice(parts):
            return [each for part in parts for each in _alone(part)]
        case Repeat(of, 0 | 1) | Atomic(of) | Group(of):
            return _alone(of)
        case Sequence(parts):
            needed = [part for part in parts if not _is_optional(part)]
            if len(needed) == 1:
                # What an atomic part takes, it does not give back.
                before = [
                    part for part in parts[: parts.index(needed[0])] if isinstance(part, Atomic)
                ]
                taken = [each for part in before for each in _alone(part)]
                return [
                    functools.reduce(and_, map(invert, taken), each) for each in _alone(needed[0])
                ]
    return []


def _is_optional(part: Tree) -> bool:
    of = part.of if isinstance(part, Atomic) else part
    return isinstance(of, Repeat) and not of.least


@functools.lru_cache(256)
def compiled(tree: Tree) -> regex.Pattern[str]:
    """Returns a tree as `regex` searches for it."""
    import regex

    return regex.compile(spelled(tree), regex.VERSION1)


def spelled(tree: Tree) -> str:
    r"""Returns a tree as an expression that `regex` takes for it in its mode VERSION1.

    >>> spelled(Choice((Repeat(Class('property', 'L'), 1, None), characters([0x2B]))))
    '\\p{L}+|\\+'
    """
    match tree:
        case Class('ranges', ((first, last),)) if first == last:
            return _escaped(first)
        case Class('property', name) if name not in _SPELLED or name == 'White_Space':
            return _between_brackets(tree)
        case Class('complement', of):
            return f'[^{_between_brackets(of)}]'
        case Class():
            return f'[{_between_brackets(tree)}]'
        case Sequence(parts):
            return ''.join(map(_enclosed, parts, [Choice] * len(parts)))
        case Choice(parts):
            return '|'.join(map(spelled, parts))
        case Repeat(of, least, most, is_lazy):
            times = {(0, 1): '?', (0, None): '*', (1, None): '+', (least, least): f'{{{least}}}'}
            any_other = f'{{{least},{"" if most is None else most}}}'
            repeated = _enclosed(of, (Sequence, Choice, Repeat, Atomic, Look, Place))
            return repeated + times.get((least, most), any_other) + '?' * is_lazy
        case Atomic(Repeat(is_lazy=False) as repeat):
            return f'{spelled(repeat)}+'
        case Atomic(of):
            return f'(?>{spelled(of)})'
        case Look(of, is_behind, is_negated):
            return f'(?{"<" * is_behind}{"!" if is_negated else "="}{spelled(of)})'
        case Group(of):
            return f'({spelled(of)})'
        case Reference(number):
            return rf'(?:\{number})'
        case Place(name):
            return f'\\{name}'


def _enclosed(tree: Tree, kinds: Any) -> str:
    return f'(?:{spelled(tree)})' if isinstance(tree, kinds) else spelled(tree)


def _between_brackets(tree: Class) -> str:
    match tree.kind:
        case 'ranges':
            ends = [(_escaped(first), _escaped(last)) for first, last in tree.of]
            return ''.join(first if first == last else f'{first}-{last}' for first, last in ends)
        case 'property':
            return _SPELLED.get(tree.of, rf'\p{{{tree.of}}}')
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
        return f'\\{character}'
    return character.encode('unicode_escape').decode()
