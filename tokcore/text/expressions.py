r"""The regular expressions of two engines, each read by its grammar into a tree.

Files of `tokenizers` have Oniguruma's, in its Ruby dialect, and files of ranks fancy-regex's (Rust's).
What the grammars lack, and what `regex` could only match in another way, is refused.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from tokcore.text.expression_trees import (
    ANY,
    Class,
    Node,
    Tree,
    characters,
    compiled,
    joined,
    may_be_empty,
    ranges,
    without_last_atoms,
)


class ExpressionError(ValueError):
    """An expression has what its grammar lacks, at a character counted from 0."""

    def __init__(self, position: int, what: str):
        super().__init__(f'{what} at character {position + 1}')
        self.position = position


@functools.lru_cache(256)
def oniguruma(expression: str) -> Tree:
    r"""Returns the tree of an expression for Oniguruma.

    >>> from tokcore.text.expression_trees import spelled
    >>> spelled(oniguruma(r'(?i:st)|\p{N}{1,3}+'))
    '[ﬅ-ﬆ]|[Ssſ][Tt]|(?:\\p{N}{1,3})+'

    Raises:
        ExpressionError: it has something that this grammar lacks.
    """
    return _Reader(expression, is_ruby=True).read()


@functools.lru_cache(256)
def fancy_regex(expression: str) -> Tree:
    r"""Returns the tree of an expression for fancy-regex.

    >>> from tokcore.text.expression_trees import spelled
    >>> spelled(fancy_regex(r'[a-z--m]|\p{N}{1,3}+$'))
    '[[[[^m]]&&[a-z]]]|\\p{N}{1,3}+\\Z'

    Raises:
        ExpressionError: it has something that this grammar lacks.
    """
    return _Reader(expression, is_ruby=False).read()


_Parts: TypeAlias = list[Tree | int]
"""Trees, and code points of characters in any case: to Oniguruma, several may be one in another case."""

_LINE_FEED = characters([0x0A])
_IN_LINE = ~_LINE_FEED
_ALPHABETIC, _SPACE, _DIGIT, _CONTROL, _SPACES = (
    Class('property', name) for name in ('Alphabetic', 'White_Space', 'Nd', 'Cc', 'Zs')
)
_WORD = _ALPHABETIC | _DIGIT | Class('property', 'M') | Class('property', 'Pc')
_RUST_WORD = _WORD | Class('property', 'Join_Control')
# Oniguruma has a table apart for the first 256 characters, which it does not use between brackets.
_RUBY_WORD = _WORD | characters(map(ord, '²³¹¼½¾'))
_VISIBLE = ~(_SPACE | _CONTROL | Class('property', 'Cn') | Class('property', 'Cs'))

# Unicode 17 made U+0295 a letter without case. Both engines have Unicode 16, to which `compiled` keeps.
_LETTER_OF_17 = characters([0x295])
_CATEGORIES = 'L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co'
_SCRIPTS = (
    'Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han '
    'Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala '
    'Tamil Telugu Thai Tibetan'
)
_PROPERTIES = {
    **{name.lower(): Class('property', name) for name in _CATEGORIES.split()},
    **{name.lower(): Class('property', f'Script={name}') for name in _SCRIPTS.split()},
    **{name: Class('property', 'Uppercase') for name in ('uppercase', 'upper')},
    **{name: Class('property', 'Lowercase') | _LETTER_OF_17 for name in ('lowercase', 'lower')},
    'll': Class('property', 'Ll') | _LETTER_OF_17, 'lo': Class('property', 'Lo') & ~_LETTER_OF_17,
    'alphabetic': _ALPHABETIC, 'alpha': _ALPHABETIC, 'digit': _DIGIT, 'punct': Class('property', 'P'),
    'any': ANY, 'space': _SPACE, 'whitespace': _SPACE, 'ascii': ranges((0, 0x7F)),
}  # fmt: skip
_RUBY_BRACKETS = {
    **{name: _PROPERTIES[name] for name in ('alpha', 'ascii', 'digit', 'lower', 'space', 'upper')},
    'alnum': _ALPHABETIC | _DIGIT, 'word': _WORD, 'graph': _VISIBLE, 'print': _VISIBLE | _SPACES,
    'blank': _SPACES | characters([0x09]), 'cntrl': _CONTROL,
    'punct': Class('property', 'P') | Class('property', 'S'),
    'xdigit': ranges((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}  # fmt: skip
_RUST_BRACKETS = {
    'alnum': '09AZaz', 'alpha': 'AZaz', 'ascii': '\0\x7f', 'blank': '\t\t  ', 'cntrl': '\0\x1f\x7f\x7f',
    'digit': '09', 'graph': '!~', 'lower': 'az', 'print': ' ~', 'punct': '!/:@[`{~', 'space': '\t\r  ',
    'upper': 'AZ', 'word': '09AZ__az', 'xdigit': '09AFaf',
}  # fmt: skip

_CONTROLS = {'n': 0x0A, 'r': 0x0D, 't': 0x09, 'v': 0x0B, 'f': 0x0C, 'a': 0x07, 'e': 0x1B}
_TIMES = re.compile(r'[*+?]|\{(?:([0-9]+)(,?)([0-9]*)|,([0-9]+))\}')
_FLAGS = re.compile(r'\?([a-z]*)(?:-([a-z]+))?([:)])')
_OPENING = re.compile(r'\?(?:[:>=!]|<[=!])')
_CODE = re.compile(r'x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})')
_PROPERTY = re.compile(r'[pP]\{(\^?)([\w ]+)\}|[pP]([LMNPSZ])', re.ASCII)
_BRACKET = re.compile(r'\[:(\^?)([a-z]+):\]')
_REFERENCE = re.compile('[1-9][0-9]*')
_MOST_TIMES = 1000
"""Both engines have limits of their own for repeats, which are higher."""


class _Reader:
    """Reads an expression."""

    def __init__(self, text: str, is_ruby: bool):
        self._text, self._is_ruby = text, is_ruby
        self._at = self._depth = self._behind = self._groups = 0
        # Some of i, m (lines have ends) and s (a dot matches a line break too).
        self._flags: frozenset[str] = frozenset()
        # Without references it does not matter what a group is.
        self._has_references = re.search(r'\\[1-9]', text) is not None
        self._ended: set[int] = set()

    def read(self) -> Tree:
        if not self._text:
            self._refuse('there is nothing')
        tree = _sequence(self._choice())
        if self._at < len(self._text):
            self._refuse('a ) without its (')
        return without_last_atoms(tree)

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        raise ExpressionError(self._at if at is None else at, what)

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._text[self._at - 1 : self._at] or self._refuse('the end', self._at - 1)

    def _takes(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _found(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _choice(self) -> _Parts:
        """Returns the parts up to the end of a group, or a choice as the only part."""
        options = [self._parts()]
        while self._takes('|'):
            options.append(self._parts())
        return options[0] if len(options) == 1 else [joined('choice', map(_sequence, options))]

    def _parts(self) -> _Parts:
        parts: _Parts = []
        while True:
            if self._next() in ('', '|', ')'):
                return parts
            parts += self._repeated(self._atom())

    def _repeated(self, atom: _Parts) -> _Parts:
        is_repeated = False
        while True:
            at = self._at
            times = self._found(_TIMES)
            if times is None:
                return atom
            body = _sequence(atom)
            if body.kind in ('look', 'place') or not atom or (is_repeated and not self._is_ruby):
                self._refuse(f'{times[0]} with nothing to repeat', at)
            is_interval = times[0][0] == '{'
            least, most = _bounds(times)
            if not least <= (least if most is None else most) <= _MOST_TIMES:
                self._refuse(f'the repeat {times[0]}', at)
            if most != 1 and may_be_empty(body):
                self._refuse(f'{times[0]} after what may match nothing', at)
            is_repeated = True
            # Oniguruma takes {n}? for (?:{n})?, and {n,m}+ for (?:{n,m})+.
            is_lazy = not (self._is_ruby and is_interval and least == most) and self._takes('?')
            tree = body if least == most == 1 else Node('repeat', (body, least, most, is_lazy))
            is_atomic = not (self._is_ruby and (is_interval or is_lazy)) and self._takes('+')
            atom = [self._atomic(tree, at) if is_atomic else tree]

    def _atomic(self, of: Tree, at: int) -> Tree:
        if self._behind:
            self._refuse('an atomic part of a look-behind', at)
        return of if isinstance(of, Class) else Node('atomic', (of,))

    def _atom(self) -> _Parts:
        """Returns what a repeat would repeat; several parts are those of a group that is nothing more."""
        start = self._at
        if self._found(_TIMES):
            self._refuse('a repeat of nothing', start)
        match self._take():
            case '.':
                return [ANY if 's' in self._flags else _IN_LINE]
            case '^' if self._is_ruby:  # at the end of a text no line begins
                after = Node('sequence', (_look(_LINE_FEED, is_behind=True), _look(ANY)))
                return [Node('choice', (Node('place', ('A',)), after))]
            case '^':
                start_of_line = _look(_IN_LINE, is_behind=True, is_negated=True)
                return [start_of_line if 'm' in self._flags else Node('place', ('A',))]
            case '$':
                is_of_lines = self._is_ruby or 'm' in self._flags
                return [_look(_IN_LINE, is_negated=True) if is_of_lines else Node('place', ('Z',))]
            case '(':
                return self._group(start)
            case '[':
                return [self._class(start)]
            case '\\':
                return self._escape(start)
            case character:
                return self._literal(ord(character))

    def _literal(self, code: int) -> _Parts:
        if 'i' not in self._flags:
            return [characters([code])]
        if self._is_ruby and not self._behind:
            return [code]
        return [characters(_cases(code))]

    def _group(self, start: int) -> _Parts:
        opening = self._found(_OPENING)
        flags = None if opening else self._found(_FLAGS)
        if flags:
            return self._with_flags(flags, start)
        kind = opening[0] if opening else ''
        if not opening and self._next() in ('?', '*'):
            self._refuse(f'a group with {self._text[start : start + 4]!r}', start)
        self._groups += not opening
        number = self._groups
        self._behind += '<' in kind
        parts = self._inside(start)
        if kind == '?:':
            return parts
        tree = _sequence(parts)
        self._behind -= '<' in kind
        if kind == '?>':
            return [self._atomic(tree, start)]
        if kind:
            return [_look(tree, '<' in kind, '!' in kind)]
        if not self._behind:
            self._ended.add(number)
        return [Node('group', (tree,)) if self._has_references else tree]

    def _inside(self, start: int) -> _Parts:
        self._depth += 1
        parts = self._choice()
        self._depth -= 1
        if not self._takes(')'):
            self._refuse('a ( without its )', start)
        return parts

    def _with_flags(self, found: re.Match[str], start: int) -> _Parts:
        before = self._flags
        known, dot = ('im', 'm') if self._is_ruby else ('ims', 's')
        on, off = found[1], found[2] or ''
        if not {*on, *off} <= {*known} or not on + off:
            self._refuse(f'the flags ({found[0]}', start)
        self._flags = (before | {*on.replace(dot, 's')}) - {*off.replace(dot, 's')}
        if found[3] == ':':
            parts = self._inside(start)
        elif self._is_ruby:
            parts = self._choice()  # all that follows in this group, as if it were one of its own
        elif self._depth:
            self._refuse('flags for the rest of a group', start)
        else:
            return []
        self._flags = before
        return [_sequence(parts)]

    def _escape(self, start: int) -> _Parts:
        letter = self._next()
        if letter in ('A', 'z', 'G'):
            self._at += 1
            return [Node('place', (letter.upper(),))]
        if letter == 'Z':
            self._at += 1
            feeds = Node('repeat', (_LINE_FEED, 0, 1 if self._is_ruby else None, False))
            return [_look(Node('sequence', (feeds, Node('place', ('Z',)))))]
        if letter in ('b', 'B') and (
            self._is_ruby or self._text[self._at + 1 : self._at + 2] != '{'
        ):
            self._at += 1
            return [_border(_RUBY_WORD if self._is_ruby else _RUST_WORD, letter == 'b')]
        if found := self._found(_REFERENCE):
            number = int(found[0])
            if number not in self._ended or self._behind or 'i' in self._flags:
                self._refuse(f'a reference to {number}, which may be none or in any case', start)
            return [Node('reference', (number,))]
        escaped = self._escaped(start, in_class=False)
        return self._literal(escaped) if isinstance(escaped, int) else [escaped]

    def _escaped(self, start: int, in_class: bool) -> int | Class:
        """Returns the character or the class of an escape, whose backslash is behind."""
        if found := self._found(_CODE):
            code = int(found[1] or found[2] or found[3], 16)
            is_byte = self._is_ruby and found[2] and code > 0x7F
            if code > 0x10FFFF or 0xD800 <= code < 0xE000 or is_byte:
                self._refuse(f'\\{found[0]}, which is no character', start)
            return code
        if found := self._found(_PROPERTY):
            return self._property(found, start, in_class)
        letter = self._take()
        if letter.lower() in ('d', 's', 'h', 'w'):
            word = _RUST_WORD if not self._is_ruby else _WORD if in_class else _RUBY_WORD
            of = {'d': _DIGIT, 's': _SPACE, 'h': _RUBY_BRACKETS['xdigit'], 'w': word}[
                letter.lower()
            ]
            return of if letter.islower() else ~of
        if letter == 'b' and in_class:
            return 0x08
        is_border = letter in '<>' and not in_class and not self._is_ruby
        if letter not in _CONTROLS and (letter.isascii() and letter.isalnum() or is_border):
            self._refuse(f'\\{letter}', start)
        return _CONTROLS.get(letter, ord(letter))

    def _property(self, found: re.Match[str], start: int, in_class: bool) -> Class:
        name = re.sub('[_ ]', '', found[2] or found[3]).lower()
        of = _PROPERTIES.get(name)
        if self._is_ruby:
            of = _RUBY_WORD if name == 'word' and not in_class else of or _RUBY_BRACKETS.get(name)
        if of is None or (found[3] and self._is_ruby):
            self._refuse(f'\\{found[0]}', start)
        of = self._folded(of)
        return of if (found[0][0] == 'p') == (not found[1]) else ~of

    def _folded(self, of: Class) -> Class:
        """Returns a class or a part of it as Rust ignores case: before what is left out is left out."""
        return _in_any_case(of) if 'i' in self._flags and not self._is_ruby else of

    def _class(self, start: int) -> Tree:
        """Returns a class that is in no other one, whose bracket is behind."""
        of, is_negated = self._members(start)
        if 'i' not in self._flags or not self._is_ruby:
            return ~of if is_negated else of
        of = _in_any_case(of)
        if is_negated:
            return ~of
        several = [
            fold
            for fold, codes in _cased().items()
            if len(fold) > 1 and compiled(of).search(''.join(map(chr, codes)))
        ]
        if several and self._behind:
            self._refuse('a character that is several in another case, in a look-behind', start)
        several.sort(key=lambda fold: (len(fold), fold))
        return joined('choice', [of, *map(_spelled_out, several)])

    def _members(self, start: int) -> tuple[Class, bool]:
        """Returns what is between brackets, and whether it is what a class does not have."""
        is_negated = self._takes('^')
        first = self._at
        signs = ('&&',) if self._is_ruby else (*_OPERATIONS,)
        left: Class | None = None
        members: list[Class] = []
        before = ''
        while True:
            at = self._at
            sign = next((each for each in signs if self._takes(each)), '')
            if not sign and (at == first or not self._takes(']')):
                members.append(self._member(at == first, start))
                continue
            if not members:
                self._refuse('nothing on a side of an operator', at)
            right = self._folded(functools.reduce(operator.or_, members))
            left = right if left is None else _OPERATIONS[before](left, right)
            if not sign:
                return self._folded(left), is_negated
            before, members = sign, []

    def _member(self, is_first: bool, start: int) -> Class:
        """Returns a character, a range or a class between brackets."""
        at = self._at
        if found := self._found(_BRACKET):
            if found[2] not in _RUST_BRACKETS:
                self._refuse(found[0], at)
            ends = [*map(ord, _RUST_BRACKETS[found[2]])]
            of = self._folded(ranges(*zip(ends[::2], ends[1::2], strict=True)))
            of = _RUBY_BRACKETS[found[2]] if self._is_ruby else of
            return ~of if found[1] else of
        if self._takes('['):
            of, is_negated = self._members(at)
            return ~of if is_negated else of
        if not self._next():
            self._refuse('a [ without its ]', start)
        is_dash = self._next() == '-'
        one = self._single()
        if not isinstance(one, int):
            return one
        following = self._text[self._at : self._at + 2]
        if is_dash and following[:1] != ']' and (not is_first or following[:1] == '-'):
            self._refuse('a - that is no range; write \\-', at)
        if following[:1] != '-' or following == '-]' or (following == '--' and not self._is_ruby):
            return characters([one])
        self._at += 1
        last = None if self._text.startswith(('[', '&&'), self._at) else self._single()
        if not isinstance(last, int) or last < one:
            self._refuse('a range without its end', at)
        return ranges((one, last))

    def _single(self) -> int | Class:
        start = self._at
        character = self._take()
        return self._escaped(start, in_class=True) if character == '\\' else ord(character)


def _bounds(times: re.Match[str]) -> tuple[int, int | None]:
    if times[0][0] != '{':
        return int(times[0] == '+'), 1 if times[0] == '?' else None
    if times[4]:
        return 0, int(times[4])
    most = int(times[3]) if times[3] else None if times[2] else int(times[1])
    return int(times[1]), most


def _look(of: Tree, is_behind: bool = False, is_negated: bool = False) -> Tree:
    return Node('look', (of, is_behind, is_negated))


def _border(word: Class, is_border: bool) -> Tree:
    """Returns where only one side has a word, or else both or none have."""
    sides = [
        (_look(word, True, is_negated), _look(word, False, is_negated != is_border))
        for is_negated in (False, True)
    ]
    return Node('choice', tuple(Node('sequence', side) for side in sides))


_OPERATIONS: dict[str, Callable[[Class, Class], Class]] = {
    '&&': lambda left, right: left & right,
    '--': lambda left, right: left & ~right,
    '~~': lambda left, right: (left & ~right) | (right & ~left),
}


@functools.cache
def _cased() -> dict[str, tuple[int, ...]]:
    """Returns the characters that are the same in any case, by that: one character or several."""
    found: dict[str, list[int]] = {}
    for code in range(0x20000):
        fold = chr(code).casefold()
        if fold != chr(code):
            found.setdefault(fold, [ord(fold)] if len(fold) == 1 else []).append(code)
    return {fold: tuple(codes) for fold, codes in found.items()}


def _cases(code: int) -> tuple[int, ...]:
    """Returns a character in all cases that are one character."""
    return _cased().get(chr(code).casefold(), (code,))


def _in_any_case(of: Class) -> Class:
    cased = ''.join(map(chr, (code for codes in _cased().values() for code in codes)))
    found = {*compiled(of).findall(cased)}
    more = {chr(code) for one in found for code in _cases(ord(one))} - found
    return of | characters(map(ord, more)) if more else of


def _spelled_out(fold: str) -> Tree:
    return Node('sequence', tuple(characters(_cases(ord(one))) for one in fold))


def _sequence(parts: _Parts) -> Tree:
    """Returns parts one after the other."""
    done: list[Tree] = []
    while parts:
        size, tree = _first(parts)
        done.append(tree)
        parts = parts[size:]
    return joined('sequence', done)


def _first(parts: _Parts) -> tuple[int, Tree]:
    """Returns the first part; of letters, as many of the first as are one in another case."""
    first = parts[0]
    if not isinstance(first, int):
        return 1, first
    folds = [chr(part).casefold() if isinstance(part, int) else '' for part in parts[:3]]
    for size in (3, 2, 1):
        fold = ''.join(folds[:size])
        if len(fold) > 1 and fold in _cased() and size in (1, len(fold)) and all(folds[:size]):
            return size, Node('choice', (characters(_cased()[fold]), _spelled_out(fold)))
    return 1, characters(_cases(first))
